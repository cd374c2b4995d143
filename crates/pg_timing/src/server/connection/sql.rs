//! The text of a statement, and literals in it.

use super::Connection;
use super::libpq::owned;
use super::parameters::text;
use crate::error::Error;
use libc::c_void;

/// A statement. Errors repeat a part of its text, unless it contains values: they can be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sql {
    text: String,
    has_values: bool,
}

impl Sql {
    pub fn new(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), has_values: false }
    }

    /// Returns a statement whose text is not repeated in errors.
    pub fn with_values(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), has_values: true }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text for an error.
    pub fn shown(&self) -> Option<&str> {
        (!self.has_values).then_some(&self.text)
    }
}

impl From<&str> for Sql {
    fn from(text: &str) -> Sql {
        Sql::new(text)
    }
}

impl From<&String> for Sql {
    fn from(text: &String) -> Sql {
        Sql::new(text)
    }
}

impl Connection {
    /// Returns the value as an SQL literal, or `NULL`. The server infers its type from the place where it is used.
    pub fn literal(&self, value: Option<&str>) -> Result<String, Error> {
        let Some(value) = value else { return Ok("NULL".into()) };
        let value = text(value)?;
        // SAFETY: the connection is not NULL, and the text has this length. The result is copied, and freed once.
        let literal = unsafe {
            let escaped = (self.pq.PQescapeLiteral)(self.conn, value.as_ptr(), value.as_bytes().len());
            let literal = owned(escaped);
            (self.pq.PQfreemem)(escaped as *mut c_void);
            literal
        };
        literal.ok_or_else(|| Error::new("libpq could not quote a value", "values must be UTF-8 text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_shown() {
        assert_eq!(Sql::from("SELECT 1").shown(), Some("SELECT 1"));
        let secret = Sql::with_values("EXECUTE q('hunter2')");
        assert_eq!((secret.text(), secret.shown()), ("EXECUTE q('hunter2')", None));
    }
}
