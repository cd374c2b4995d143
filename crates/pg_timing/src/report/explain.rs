//! What `explain` found out. The serde names are the JSON contract.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Add;

/// An estimate, and the bounds that the truth lies between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

impl Range {
    /// Two bounds, and the middle as the estimate.
    pub fn between(low: f64, high: f64) -> Range {
        Range { low, estimate: (low + high) / 2.0, high }
    }

    /// How far from the estimate the farther bound is.
    pub fn off(self) -> f64 {
        (self.high - self.estimate).max(self.estimate - self.low)
    }

    /// The same in another unit.
    pub fn times(self, factor: f64) -> Range {
        Range { low: self.low * factor, estimate: self.estimate * factor, high: self.high * factor }
    }
}

impl Add for Range {
    type Output = Range;

    fn add(self, other: Range) -> Range {
        Range { low: self.low + other.low, estimate: self.estimate + other.estimate, high: self.high + other.high }
    }
}

/// How much of an EXPLAIN ANALYZE is the clock.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ExplainReport {
    /// version of this JSON's shape
    pub schema_version: u32,
    /// version of pg_timing
    pub version: &'static str,
    /// what matters for the figures, as it was
    pub settings: BTreeMap<String, String>,
    /// not in every captured plan
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// of a statement that was run
    #[serde(flatten)]
    pub runs: Option<LiveRuns>,
    /// of a captured plan
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// EXPLAIN ANALYZE
    pub reported_ms: f64,
    /// without being timed
    pub corrected_ms: Range,
    /// (reported - rows only) / reported; of a captured plan an estimate
    pub clock_share: f64,
    /// what to know about these figures
    pub notes: Vec<String>,
    pub nodes: Vec<ExplainedNode>,
}

/// What running the statement told, in ms. None of it is known of a captured plan.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LiveRuns {
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// of each way to run it
    pub runs: usize,
    /// and plain, without EXPLAIN
    pub plain_runs: usize,
    /// without EXPLAIN, its rows not sent
    pub plain_ms: f64,
    /// EXPLAIN ANALYZE, TIMING OFF
    pub rows_only_ms: f64,
    /// EXPLAIN ANALYZE, TIMING OFF, BUFFERS OFF; where EXPLAIN ANALYZE counts buffers unasked
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_buffers_ms: Option<f64>,
    /// (reported - plain) / reported
    pub overhead_share: f64,
    /// of an empty statement; taken off the plain runs
    pub round_trip_ms: f64,
    /// of all nodes, by each process
    pub calls: f64,
    /// what reading the clock adds to one of them, on average, in ns
    pub clock_per_call_ns: Range,
    /// what counting rows, and buffers where they are counted unasked, adds
    pub rows_per_call_ns: Range,
    /// EXPLAIN ANALYZE with every other way to time that the server offers
    pub timed: Vec<Timed>,
}

/// What EXPLAIN ANALYZE says with a setting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Timed {
    pub setting: String,
    pub value: String,
    pub reported_ms: f64,
    /// (reported - plain) / reported
    pub overhead_share: f64,
    /// what its timing adds to a call, on average, in ns
    pub clock_per_call_ns: Range,
}

/// What a captured plan and its taker told.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Capture {
    /// plans in the file
    pub plans: usize,
    /// the one that was taken, from 1
    pub taken: usize,
    /// timed calls of all nodes, by each process
    pub calls: Range,
    /// one read of the server's clock, as given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<f64>,
    /// what a timed call takes more by that read, and by counting rows
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_call_ns: Option<Range>,
    /// what the statement takes without EXPLAIN, as given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_plain_ms: Option<f64>,
    /// (reported - plain) / calls
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implied_call_ns: Option<f64>,
    /// the bounds of the clock's share
    pub clock_share: Range,
    /// the share of its time by which one run is taken to differ from another by itself: in the bounds
    pub runs_differ: f64,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ExplainedNode {
    /// indexes from the root down, like `0.1`
    pub path: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    #[serde(skip)]
    pub depth: usize,
    /// of all processes
    pub calls: f64,
    /// that ran it side by side
    pub processes: u32,
    /// all loops together, of each process
    pub reported_ms: f64,
    /// how far reported_ms may be off because one loop's time is printed with three decimals; where that is over a
    /// quarter of it, clock_share tells nothing
    pub rounded_ms: f64,
    pub corrected_ms: Range,
    /// by pg_fast_timing's sampling, as a part of the plain time; where that is there
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_ms: Option<Range>,
    /// of the reported time
    pub clock_share: f64,
    /// without the nodes below
    pub reported_self_ms: f64,
    pub corrected_self_ms: f64,
    /// how far reported_self_ms may be off, by the runs and by rounding
    pub reported_self_off_ms: f64,
    /// how far corrected_self_ms may be off for the node's own reasons; a slower machine makes all nodes longer alike
    pub corrected_self_off_ms: f64,
    /// 1 takes the most by itself
    pub rank: usize,
    pub corrected_rank: usize,
}
