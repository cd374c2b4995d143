//! The report of `explain --top`. The serde names are the JSON contract.

use super::{Range, ReadCost};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopReport {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// read cost of the clock that times plan nodes
    pub read: ReadCost,
    /// time since pg_stat_statements was reset, in seconds
    pub since_reset_s: f64,
    /// planned statements, the one that would lose most time to timing first
    pub statements: Vec<TopStatement>,
    /// other statements that were tried, by reason
    pub skipped: Vec<SkippedStatements>,
    /// why statements that auto_explain times can be missing, and what to do about it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<String>,
    /// stopped early: some statements are missing
    pub interrupted: bool,
}

/// One statement of pg_stat_statements.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopStatement {
    /// the query ID, as text because many JSON readers round such a number
    pub query_id: String,
    /// normalized by the server: parameters instead of constants
    pub statement: String,
    /// executions since the reset
    pub calls: f64,
    /// mean execution time in ms
    pub mean_ms: f64,
    /// mean number of rows that an execution returned or changed
    pub rows: f64,
    /// calls of all plan nodes per execution, from the planner's row counts
    pub node_calls: Range,
    /// what the timing of EXPLAIN ANALYZE or auto_explain would add to an execution, in ms; missing if the read cost is
    /// unknown
    pub added_ms: Option<Range>,
    /// the same as a fraction of the time of an execution with timing; missing also if the execution took no time
    #[serde(default)]
    pub added_share: Option<Range>,
}

/// Statements that were not planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedStatements {
    pub why: String,
    pub statements: u64,
    /// their share of the execution time of all statements
    pub time_share: f64,
    /// the server's message about the first of them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}
