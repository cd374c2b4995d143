//! Why a number of events is not known, and what to do about it.

/// A part of the statistics that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub why: String,
    /// with the command to type
    pub hint: String,
}

/// For a gap that a second run can close.
pub const RUN_AGAIN: &str = "run it again: pg_timing advise";
/// For statistics that the server does not show to this user.
pub const NEEDS_MONITOR: &str = "let a superuser run: GRANT pg_monitor TO \"ROLE\"";
/// For statistics of one database.
pub const OTHER_DATABASES: &str = "run it in each database: pg_timing advise -d DATABASE";

impl Gap {
    pub fn new(why: impl Into<String>, hint: impl Into<String>) -> Gap {
        Gap { why: why.into(), hint: hint.into() }
    }
}
