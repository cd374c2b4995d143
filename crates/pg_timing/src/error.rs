//! Errors of servers, of connections and of input, each with a hint.

use crate::human::reason;
use std::fmt::Display;

/// The five characters of a server's error code:
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlState(pub String);

impl SqlState {
    /// our own use of the code for an impossible connection: nothing listens at the address
    pub const NO_SERVER: &str = "08001";
    pub const QUERY_CANCELED: &str = "57014";
    pub const READ_ONLY: &str = "25006";
    pub const SYNTAX: &str = "42601";
    pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
    /// the prepared statement does not exist
    pub const NO_SUCH_STATEMENT: &str = "26000";
    pub const STATEMENT_EXISTS: &str = "42P05";

    /// Returns whether this is the code.
    pub fn is(&self, code: &str) -> bool {
        self.0 == code
    }

    /// Returns whether the session has ended: the server ended it (classes 57P and 08), or libpq lost the connection and
    /// there is no code.
    pub fn ends_session(&self) -> bool {
        self.0.is_empty() || self.0.starts_with("57P") || self.0.starts_with("08")
    }
}

/// An error in one line, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub what: String,
    /// what the user can do; can be empty
    pub hint: String,
    /// only for errors of the server
    pub state: SqlState,
}

impl Error {
    /// Returns an error without a server's code.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { what: what.into(), hint: hint.into(), state: SqlState::default() }
    }

    /// Returns the error of something that the system refused.
    pub fn io(what: impl Display, error: &std::io::Error, hint: impl Into<String>) -> Error {
        Error::new(format!("{what}: {}", reason(error)), hint)
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// Returns an error with this hint, unless the condition is met.
pub fn require(is_met: bool, what: impl Into<String>, hint: impl Into<String>) -> Result<(), Error> {
    if is_met { Ok(()) } else { Err(Error::new(what, hint)) }
}

/// Joins the lines of a message, because libpq and servers write several.
pub fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
