//! The report of `explain --against`: two statements, or one under two settings. The serde names are the JSON contract.

use super::Spread;
use crate::statistics::Range;
use serde::Serialize;
use std::collections::BTreeMap;

/// Which of two statements is faster, and where.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatementComparison {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    pub difference: Difference,
    /// time of B / time of A; null if there are too few rounds, or a statement is too short to measure
    pub ratio: Option<Range>,
    /// number of rounds: A, B and A again
    pub rounds: usize,
    /// one of the statements, or both, are lost in the round trip to the server: there is no ratio
    pub is_too_short: bool,
    /// time of an empty statement; it is subtracted from all times
    pub round_trip_ms: f64,
    pub a: ComparedStatement,
    pub b: ComparedStatement,
    /// nodes with other numbers of rows come first, and then those whose times differ most
    pub nodes: Vec<NodePair>,
    /// limits of these figures
    pub notes: Vec<String>,
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// server settings that affect the figures, without those that were given with a statement
    pub settings: BTreeMap<String, String>,
}

/// What the interval of the ratio shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// B takes less time than A
    Faster,
    /// B takes more time than A
    Slower,
    /// the interval contains 1
    NoneFound,
    /// there are too few rounds, or the statements are too short
    NotDetermined,
}

impl Difference {
    pub fn of(ratio: Range) -> Difference {
        match ratio {
            Range { high, .. } if high < 1.0 => Difference::Faster,
            Range { low, .. } if low > 1.0 => Difference::Slower,
            _ => Difference::NoneFound,
        }
    }
}

/// One of the two statements.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedStatement {
    /// with the lines before it
    pub statement: String,
    /// its SET and RESET lines, with those of --against-set
    pub settings: Vec<String>,
    /// time without EXPLAIN at the speed that the machine had during the runs of A: of B it is the ratio times the time of A
    pub ms: f64,
    /// time outside of the nodes: triggers, the start and the end of the execution
    pub outside_ms: Range,
    /// median of the runs without EXPLAIN
    pub plain_ms: f64,
    /// the fastest run without EXPLAIN
    pub fastest_plain_ms: f64,
    /// times of the runs without EXPLAIN
    pub spread_ms: Spread,
    /// execution time that EXPLAIN ANALYZE reported
    pub reported_ms: f64,
    /// rows that it returns or writes; null if the statement was not explained
    pub rows: Option<f64>,
    /// the server's plan for the values of the parameters: `custom` (for these values) or `generic`; missing without values
    pub plan_mode: Option<String>,
    pub nodes: Vec<ComparedNode>,
    /// times of all runs without EXPLAIN in ms, in their order
    pub samples: Vec<f64>,
}

/// A plan node. Its times are its shares of the corrected plan, of the statement's `ms`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedNode {
    /// child indexes from the root down, like `0.1`
    pub path: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// name as in EXPLAIN's text format, after the label of the subplan
    pub title: String,
    /// rows of all loops and processes
    pub rows: f64,
    /// maximum rounding error of `rows`: EXPLAIN prints the rows of one loop, on average
    pub rows_error: f64,
    /// calls of all processes
    pub calls: f64,
    /// shared blocks that were hit or read, also by the nodes below
    pub blocks: f64,
    /// with the nodes below
    pub corrected_ms: Range,
    /// without the nodes below
    pub self_ms: Range,
}

impl ComparedNode {
    pub fn is_join(&self) -> bool {
        matches!(self.kind.as_str(), "Nested Loop" | "Hash Join" | "Merge Join")
    }
}

/// A node of A and the same one of B, or a node of only one of them.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodePair {
    /// index in `.a.nodes`
    pub a: Option<usize>,
    /// index in `.b.nodes`
    pub b: Option<usize>,
    /// self time in B minus self time in A
    pub difference_ms: Range,
    /// the numbers of rows differ by more than their rounding errors
    pub has_other_rows: bool,
}
