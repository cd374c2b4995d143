//! Connection parameters for libpq.

use super::Target;
use crate::error::Error;
use libc::c_char;
use std::ffi::CString;

/// Keywords and values as C strings.
pub struct Parameters {
    keywords: Vec<CString>,
    values: Vec<CString>,
}

impl Parameters {
    /// Returns the parameters for a target.
    pub fn of(target: &Target, password: Option<&str>) -> Result<Parameters, Error> {
        let mut parameters = Parameters { keywords: Vec::new(), values: Vec::new() };
        for (keyword, value) in target.keywords(password) {
            parameters.keywords.push(CString::new(keyword).expect("keywords have no NUL"));
            parameters.values.push(text(&value)?);
        }
        Ok(parameters)
    }

    /// Adds a parameter. It replaces an earlier one with the same keyword.
    pub fn add(&mut self, keyword: &str, value: &str) -> Result<(), Error> {
        self.keywords.push(text(keyword)?);
        self.values.push(text(value)?);
        Ok(())
    }

    /// Returns the keywords with a NULL at the end.
    pub fn keywords(&self) -> Vec<*const c_char> {
        null_terminated(&self.keywords)
    }

    /// Returns the values with a NULL at the end.
    pub fn values(&self) -> Vec<*const c_char> {
        null_terminated(&self.values)
    }
}

/// Returns pointers to the strings with a NULL at the end.
fn null_terminated(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Returns a C string.
pub fn text(text: &str) -> Result<CString, Error> {
    CString::new(text)
        .map_err(|_| Error::new("the text contains a NUL character", "check that the file is a text file"))
}
