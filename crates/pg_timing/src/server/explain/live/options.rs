//! What the runs may do.

use crate::report::PlanFormat;
use std::time::Duration;

/// What ROLLBACK does not undo.
pub const NOT_ROLLED_BACK: &str =
    "not rolled back: sequences, effects of functions outside the transaction, dead tuples";

#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// the statement may write; it is always rolled back
    pub allow_writes: bool,
    /// time limit of one run
    pub limit: Duration,
    /// time for all runs
    pub time: Duration,
    /// the server's auto_explain times the runs without EXPLAIN, too
    pub switch_off_auto_explain: bool,
    /// the report must contain the plan of a run in this format
    pub document: Option<PlanFormat>,
}

impl RunOptions {
    /// Returns options for a server without auto_explain.
    pub fn new(allow_writes: bool, limit: Duration, time: Duration) -> RunOptions {
        RunOptions { allow_writes, limit, time, switch_off_auto_explain: false, document: None }
    }
}
