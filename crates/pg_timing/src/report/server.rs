//! The report about a server, of `advise`. The serde names are the JSON contract.

use super::{Finding, Verdict};
use serde::{Deserialize, Serialize};

/// The cost of one read of the server's clock. If `ns` is missing, only the bounds are known. If the bounds are missing, too,
/// nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadCost {
    pub ns: Option<f64>,
    pub low_ns: Option<f64>,
    pub high_ns: Option<f64>,
    /// `system`, `rdtscp`, `rdtsc` or `tsc`
    pub clock: String,
    /// how it was measured, or why it was not
    pub how: String,
}

/// The report of `advise`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviseReport {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// observation time of the server's statistics in seconds
    pub window_s: f64,
    /// stopped early: the figures are from a shorter time
    pub interrupted: bool,
    /// read cost of the clock that the settings read
    pub read: ReadCost,
    /// read cost of the clock that times plan nodes, if it is another one (PostgreSQL 19's tsc)
    pub node_read: Option<ReadCost>,
    pub settings: Vec<SettingAdvice>,
    /// alarms about the clocks of the server's host, if it was measured
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
    /// events that the server's statistics do not show, or show late
    pub not_seen: Vec<String>,
}

/// How complete the number of events is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventsAre {
    Counted,
    /// the statistics show only some of the events
    AtLeast,
    #[default]
    Unknown,
}

/// What to do about a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// keep it on: it is cheap
    Keep,
    /// turn it on: it would be cheap
    TurnOn,
    /// turn it off: it is expensive
    TurnOff,
    /// do not change it: a change would be expensive or useless
    None,
    /// it may be expensive, but not with a lower auto_explain.sample_rate
    SampleLess,
    /// not determined
    #[default]
    Unknown,
}

/// A share of one core: 0.01 is 1%.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreShare {
    pub low: f64,
    /// missing if there is no upper bound
    pub high: Option<f64>,
}

/// Share of a core above which a setting is a warning. A smaller cost is not visible in the throughput, because pgbench runs differ by
/// more.
pub const CHEAP_SHARE: f64 = 0.01;
/// Share of a core above which a setting is critical: a tenth of a core does nothing but read the clock.
pub const CRITICAL_SHARE: f64 = 0.1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingAdvice {
    pub name: String,
    /// as the server prints it, or `not loaded`
    pub value: String,
    /// whether it reads the clock with its current value
    pub on: bool,
    /// missing if unknown
    pub events_per_s: Option<f64>,
    pub events_are: EventsAre,
    /// cost, or the cost if it were on
    pub core_share: Option<CoreShare>,
    pub advice: Action,
    /// one sentence
    pub summary: String,
    /// what to do if it was not determined
    pub hint: Option<String>,
    /// line for postgresql.conf
    pub line: Option<String>,
    /// line that undoes it
    pub undo: Option<String>,
}
