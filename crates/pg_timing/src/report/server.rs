//! The reports about a server: of `advise`, and of `explain` without a statement. The serde names are the JSON contract.

use super::{ExplainReport, Finding, Range, Verdict};
use serde::{Deserialize, Serialize};

/// The cost of one read of the server's clock. If `ns` is missing, only the bounds are known. If the bounds are missing, too,
/// nothing is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// The classic test: one report per statement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassicReport {
    /// 100 000 rows in one loop
    #[serde(flatten)]
    pub count: ExplainReport,
    /// 100 000 rows in 400 loops
    pub nested: ExplainReport,
    /// read cost of the clock that times the server's plan nodes
    pub read: ReadCost,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_read: Option<ReadCost>,
    pub settings: Vec<SettingAdvice>,
    /// calls of plan nodes, which auto_explain.log_timing times
    #[serde(default)]
    pub node_calls: NodeCallsReport,
    /// alarms about the clocks of the server's host, if it was measured
    #[serde(default)]
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
    /// shares of a core above which a setting is a warning, and critical
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_share_limits: Option<CoreShareLimits>,
    /// events that the server's statistics do not show, or show late
    pub not_seen: Vec<String>,
}

/// How complete the number of events is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventsAre {
    Counted,
    /// the statistics show only some of the events
    AtLeast,
    Unknown,
}

/// What to do about a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The shares of a core above which a setting is a warning, and critical.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreShareLimits {
    pub warning: f64,
    pub critical: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// typical number of clock reads per event
    pub reads_per_event: f64,
    /// cost, or the cost if it were on
    pub core_share: Option<CoreShare>,
    /// events per second that would cost 1% of a core, at the highest read cost; missing if that is unknown
    #[serde(default)]
    pub limit_per_s: Option<f64>,
    pub advice: Action,
    /// one sentence
    pub summary: String,
    /// what to do if it was not determined
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub why: String,
    /// line for postgresql.conf
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// line that undoes it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// too few events in the window: the summary is about a busy server, not about the window
    pub extrapolated: bool,
}

/// Calls of plan nodes per second. pg_fast_timing counts them; without it, they are not determined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeCallsReport {
    /// whether auto_explain.log_timing can be on, at the present auto_explain.sample_rate
    pub answer: LogTimingAnswer,
    /// why there are no figures
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// why the answer is unknown although there are figures
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// what to do to get figures or an answer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// in the observed window
    pub window: Option<PeriodCalls>,
    /// auto_explain.sample_rate with which timing costs at most 1% of a core; missing if any rate does, or if that is unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<f64>,
}

/// Calls of plan nodes in a period, and what timing all of them costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeriodCalls {
    pub seconds: f64,
    pub per_s: Range,
    /// share of a core that clock reads take at sample_rate 1, at most all CPUs. Missing if the read cost is unknown
    pub core_share: Option<Range>,
    /// the same without this limit: what clock reads need if statements are executed as often as in the period
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_cores: Option<Range>,
}

/// Whether auto_explain.log_timing can be on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogTimingAnswer {
    /// it costs at most 1% of a core
    Yes,
    /// it costs more
    No,
    /// it may cost more; with a lower sample_rate it does not
    WithSampleRate,
    #[default]
    Unknown,
}
