//! The report of `explain --plan LOG --all`: all plans of a log. The serde names are the JSON contract.

use crate::statistics::Range;
use serde::{Deserialize, Serialize};

/// How much of the time of all plans is overhead, statement by statement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogReport {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    /// names of the files
    pub files: Vec<String>,
    /// number of plans that were found, with those that were skipped
    pub plans: u64,
    /// all plans together, without those that were skipped, and without nested plans: their time is also in the time of the
    /// statements that executed them
    pub total: LogTotal,
    /// reported time of nested plans, which the total does not contain
    pub nested_ms: f64,
    /// the statement that lost the most time to timing comes first
    pub statements: Vec<LoggedStatement>,
    /// the plans that the figures do not include, by reason
    pub skipped: Vec<SkippedPlans>,
    /// the hosts, containers or pods that wrote the plans, if the lines of the log name several; the figures are right only for
    /// the host whose clock was given
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<LogHost>,
    /// reading ended early, because of a signal or an error
    pub is_incomplete: bool,
    /// limits of these figures
    pub notes: Vec<String>,
}

/// The sum over plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogTotal {
    /// number of plans; in the total, without nested ones
    pub runs: u64,
    /// number of plans of nested statements: a function or a trigger executed them. They have rows of their own
    pub nested_runs: u64,
    /// execution time that auto_explain reported
    pub reported_ms: f64,
    /// time without overhead
    pub corrected_ms: Range,
    /// time of the clock reads
    pub clock_ms: Range,
    /// (reported - corrected) / reported
    pub overhead_share: Range,
    /// clock reads as a fraction of the reported time
    pub clock_share: Range,
}

impl LogTotal {
    /// Returns the overhead in ms.
    pub fn overhead_ms(&self) -> Range {
        self.corrected_ms.subtracted_from(self.reported_ms)
    }
}

/// All plans of a statement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoggedStatement {
    /// with `?` instead of constants, and at most 1000 bytes; missing for plans without a query, and for all statements
    /// after the first 5000 of the log, which are one row
    pub statement: Option<String>,
    /// the server's identifier of the query, if the log has it
    pub query_id: Option<i64>,
    #[serde(flatten)]
    pub total: LogTotal,
    /// file and line of the slowest plan
    pub slowest: LogPlace,
}

/// Where a plan is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogPlace {
    pub file: String,
    /// from 1
    pub line: u64,
}

/// A host, container or pod that wrote plans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogHost {
    /// as the lines of the log name it
    pub name: String,
    /// number of its plans, with those that were skipped
    pub plans: u64,
}

/// Plans that the figures do not include.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedPlans {
    pub plans: u64,
    /// why the first one was skipped
    pub reason: String,
    /// what to do
    pub hint: String,
    /// the first one
    pub first: LogPlace,
    /// a part of the plan is missing or wrong; otherwise it is a plan without times
    pub is_damaged: bool,
}
