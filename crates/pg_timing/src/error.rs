//! What a server, or the way to it, has to say against a wish.

/// The five characters that tell the kind of an error:
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlState(pub String);

impl SqlState {
    pub const QUERY_CANCELED: &str = "57014";
    pub const READ_ONLY: &str = "25006";
    pub const SYNTAX: &str = "42601";
    /// a statement that PREPARE does not take
    pub const NOT_PREPARABLE: &str = "42P14";
    /// of PREPARE and EXECUTE
    pub const NO_SUCH_STATEMENT: &str = "26000";
    pub const STATEMENT_EXISTS: &str = "42P05";

    pub fn is(&self, code: &str) -> bool {
        self.0 == code
    }

    /// The server said goodbye (class 57P, 08), or libpq has lost it and there is no state.
    pub fn ends_session(&self) -> bool {
        self.0.is_empty() || self.0.starts_with("57P") || self.0.starts_with("08")
    }
}

/// One line, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub what: String,
    pub hint: String,
    /// of the server's errors only
    pub state: SqlState,
}

impl Error {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { what: what.into(), hint: hint.into(), state: SqlState::default() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// libpq and servers write several lines; an error is one.
pub fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
