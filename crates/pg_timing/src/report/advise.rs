//! What `advise` found out. The serde names are the JSON contract.

use super::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviseReport {
    /// version of this JSON's shape
    pub schema_version: u32,
    /// version of pg_timing
    pub version: &'static str,
    /// like `18.6`
    pub server_version: String,
    /// database, host and port
    pub server: String,
    /// how long the server's statistics were watched
    pub window_s: f64,
    /// stopped before its time: the figures are what was had by then
    pub interrupted: bool,
    /// of the clock that the settings read
    pub read: ReadCost,
    /// of the clock that plan nodes are timed by, where that is another one (19's tsc)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_read: Option<ReadCost>,
    pub settings: Vec<SettingAdvice>,
    pub verdict: Verdict,
    /// what the server did not show, or shows late
    pub not_seen: Vec<String>,
}

/// What one read of the server's clock costs. Where `ns` is missing nothing but the bounds is known;
/// where those are missing too, nothing is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReadCost {
    pub ns: Option<f64>,
    pub low_ns: Option<f64>,
    pub high_ns: Option<f64>,
    /// `system`, `rdtscp`, `rdtsc` or `tsc`
    pub clock: String,
    /// how that is known, or why it is not
    pub how: String,
}

/// How the events were had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventsAre {
    Counted,
    /// the statistics show some of them, and cannot show more
    AtLeast,
    Unknown,
}

/// What to do about a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// it is cheap as it is
    Keep,
    /// it would be cheap
    TurnOn,
    /// it is dear
    TurnOff,
    /// leave it as it is: changing it would be dear, or is of no use
    None,
    /// could not tell
    Unknown,
}

/// Of one core, 0.01 is 1%.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CoreShare {
    pub low: f64,
    /// missing where there is no upper bound
    pub high: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingAdvice {
    pub name: &'static str,
    /// as the server prints it, or `not loaded`
    pub value: String,
    /// whether it reads the clock as it is set
    pub on: bool,
    /// missing where it is unknown
    pub events_per_s: Option<f64>,
    pub events_are: EventsAre,
    /// of the clock, usually
    pub reads_per_event: f64,
    /// what it costs, or would cost if it were on
    pub core_share: Option<CoreShare>,
    pub advice: Action,
    /// one sentence
    pub summary: String,
    pub why: String,
    /// for postgresql.conf
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// the way back
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}
