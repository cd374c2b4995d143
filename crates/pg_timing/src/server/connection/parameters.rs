//! Texts for libpq.

use super::Target;
use crate::error::Error;
use libc::c_char;
use std::ffi::CString;

/// Two lists of texts, as libpq takes them.
pub struct Parameters {
    keywords: Vec<CString>,
    values: Vec<CString>,
}

impl Parameters {
    pub fn of(target: &Target, password: Option<&str>) -> Result<Parameters, Error> {
        let mut parameters = Parameters { keywords: Vec::new(), values: Vec::new() };
        for (keyword, value) in target.keywords(password) {
            parameters.keywords.push(CString::new(keyword).expect("keywords have no NUL"));
            parameters.values.push(text(&value)?);
        }
        Ok(parameters)
    }

    pub fn keywords(&self) -> Vec<*const c_char> {
        ended(&self.keywords)
    }

    pub fn values(&self) -> Vec<*const c_char> {
        ended(&self.values)
    }
}

/// With NULL as its end.
fn ended(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// A text for C.
pub fn text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new("a NUL character where text belongs", "is the file a text file?"))
}
