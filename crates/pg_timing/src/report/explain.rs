//! What `explain` found out. The serde names are the JSON contract.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// An estimate of a time without timing, in ms, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Corrected {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplainReport {
    /// version of this JSON's shape
    pub schema_version: u32,
    /// version of pg_timing
    pub version: &'static str,
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// what matters for the figures, as it was
    pub settings: BTreeMap<String, String>,
    pub statement: String,
    /// of each way to run it
    pub runs: usize,
    /// without EXPLAIN, its rows not sent
    pub plain_ms: f64,
    /// EXPLAIN ANALYZE, TIMING OFF
    pub rows_only_ms: f64,
    /// EXPLAIN ANALYZE, TIMING OFF, BUFFERS OFF; where EXPLAIN ANALYZE counts buffers unasked
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_buffers_ms: Option<f64>,
    /// EXPLAIN ANALYZE
    pub reported_ms: f64,
    pub corrected_ms: Corrected,
    /// (reported - rows only) / reported
    pub clock_share: f64,
    /// (reported - plain) / reported
    pub overhead_share: f64,
    /// of an empty statement; taken off the plain runs
    pub round_trip_ms: f64,
    /// what to know about these figures
    pub notes: Vec<String>,
    pub nodes: Vec<ExplainedNode>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    pub corrected_ms: Corrected,
    /// of the reported time
    pub clock_share: f64,
    /// without the nodes below
    pub reported_self_ms: f64,
    pub corrected_self_ms: f64,
    /// 1 takes the most by itself
    pub rank: usize,
    pub corrected_rank: usize,
}

impl ExplainReport {
    /// What reading the clock added.
    pub fn clock_ms(&self) -> f64 {
        (self.reported_ms - self.rows_only_ms).max(0.0)
    }
}
