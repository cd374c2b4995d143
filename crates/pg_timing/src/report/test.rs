//! The JSON output of `pg_timing test`. The serde names are the JSON contract.

use serde::Serialize;

/// The differences between neighboring readings of each clock, as pg_test_timing measures them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestReport {
    /// version of this JSON format
    pub schema_version: u64,
    /// version of pg_timing
    pub version: String,
    /// requested time for each clock
    pub duration_s: u64,
    /// Ctrl-C ended the test early
    pub interrupted: bool,
    pub clocks: Vec<TestedClock>,
    /// null if the test ended before this was known
    pub tsc: Option<TscSummary>,
}

/// The figures of one clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestedClock {
    /// `system`, `rdtscp` or `rdtsc`
    pub name: String,
    /// elapsed time divided by the number of readings
    pub loop_ns: f64,
    pub reads: u64,
    /// each difference that was seen, from the shortest on
    pub observed: Vec<ObservedDuration>,
}

/// A difference between two neighboring readings, and how often it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObservedDuration {
    pub ns: u64,
    pub count: u64,
}

/// What PostgreSQL 19 decides about the TSC.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TscSummary {
    /// PostgreSQL 19's sources of the rate
    pub source: String,
    /// the rate that PostgreSQL 19 would use, or the measured rate if it would calibrate
    pub in_use_khz: Option<u64>,
    /// null if the calibration did not converge
    pub calibrated_khz: Option<u64>,
    pub usable: bool,
    pub used_by_default: bool,
}
