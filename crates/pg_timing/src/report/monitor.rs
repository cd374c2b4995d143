//! What `pg_timing monitor` knows at one instant: the input of its screen and of its metrics.

use super::{AdviseReport, ClockReport, Finding, Report, Severity};
use crate::json;
use std::collections::{BTreeMap, VecDeque};
use timing_clock::Rate;

/// The state of the monitor after its last sample. Times of day are in seconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct MonitorReport {
    pub started_at: f64,
    /// time of the last sample
    pub sampled_at: f64,
    pub interval_s: f64,
    /// number of samples
    pub samples: u64,
    /// the facts of the host, the verdict, and the figures of the last intervals
    pub now: Report,
    /// every finding of the checks, in their order
    pub findings: Vec<WatchedFinding>,
    pub clocks: Vec<WatchedClock>,
    /// sudden changes of the offset between two clocks since the start, by clock and reference clock
    pub offset_steps: BTreeMap<(String, String), u64>,
    /// the measured rate of the CPU's counter
    pub counter: Option<Rate>,
    pub suspends: u64,
    pub suspended_s: f64,
    pub pauses: u64,
    pub paused_s: f64,
    /// messages about clocks in the kernel log since the start
    pub kernel_messages: u64,
    /// the last events, the newest at the end
    pub events: VecDeque<MonitorEvent>,
    /// number of events of each kind since the start
    pub event_counts: BTreeMap<EventKind, u64>,
    pub collectors: Vec<Collector>,
    pub own: OwnUse,
    /// number of HTTP requests by the status code of the answer; `refused` for connections beyond the limit
    pub http_requests: BTreeMap<&'static str, u64>,
    /// the events that are not in the file of events, and the reason
    pub unwritten: Option<String>,
    /// the server of `--server`
    pub server: Option<ServerReport>,
}

impl MonitorReport {
    /// Returns PostgreSQL's clock.
    pub fn system(&self) -> Option<&WatchedClock> {
        self.clocks.iter().find(|clock| clock.last.name == super::SYSTEM)
    }
}

/// One finding with its history.
#[derive(Clone, Debug)]
pub struct WatchedFinding {
    pub finding: Finding,
    /// when it got its present severity
    pub since: f64,
    /// when it last became a warning or critical, if it ever did
    pub appeared_at: Option<f64>,
    /// number of samples in a row with a lower severity than the alarm has
    pub lower_for: u32,
    /// number of samples since the severity of an alarm fell
    pub fell_before: u32,
    /// number of samples with a lower severity after which the alarm clears
    pub clears_after: u32,
}

impl WatchedFinding {
    pub fn new(finding: Finding, since: f64) -> WatchedFinding {
        WatchedFinding { finding, since, appeared_at: None, lower_for: 0, fell_before: u32::MAX, clears_after: 0 }
    }
}

/// One clock over time.
#[derive(Clone, Debug, Default)]
pub struct WatchedClock {
    /// the figures of the last sample
    pub last: ClockReport,
    /// read cost in each of the last samples, the newest at the end; `None` if a sample has no figure
    pub history_ns: VecDeque<Option<f32>>,
    /// largest interruption in the last interval
    pub largest_gap_ns: Option<f64>,
    pub totals: ClockTotals,
}

/// The totals of one clock since the monitor started.
#[derive(Clone, Debug, Default)]
pub struct ClockTotals {
    /// differences between consecutive readings by the upper bounds 0, 1, 3, 7, 15 ... ns
    pub histogram: Vec<u64>,
    /// sum of these differences: the time for which the clock was read
    pub measured_s: f64,
    pub backward_steps: u64,
    pub gaps: u64,
    pub gap_s: f64,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    MonitorStarted,
    MonitorStopped,
    /// a finding became a warning or critical, or its severity changed between the two
    FindingAppeared,
    FindingCleared,
    ClocksourceChanged,
    KernelMessage,
    BackwardStep,
    Suspend,
    Pause,
    /// a clock jumped against another one
    OffsetStep,
    /// the counter's rate changed
    RateChanged,
    ReadCostRose,
    ReadCostFell,
    /// the virtual machine was restored from a snapshot, cloned, or moved to another CPU model
    MachineRestored,
    CollectorFailed,
    CollectorRecovered,
    /// a statement has a plan that it did not have before
    PlanChanged,
}

impl EventKind {
    /// Returns the name in events and metrics.
    pub fn name(self) -> String {
        json::name(&self)
    }
}

/// One event. In the file of `--events`, it is one line of JSON.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MonitorEvent {
    /// time of day, like `2026-11-25T18:55:06Z`
    pub time: String,
    /// the same time, in seconds since 1970
    pub unix_seconds: f64,
    pub event: EventKind,
    /// one sentence
    pub summary: String,
    /// what it is about: a clock, the id of a finding, or a collector
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// severity of a finding
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// figure of the event: ns for backward_step and offset_step, seconds for suspend and pause, ppm for rate_changed, the new
    /// read cost in ns for read_cost_rose and read_cost_fell
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// A part of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Collector {
    pub name: &'static str,
    /// duration of its last run
    pub seconds: f64,
    /// why its last run has no figures
    pub error: Option<String>,
}

impl Collector {
    /// The name of the collector of `--server`.
    pub const SERVER: &'static str = "server";
}

/// The resources that the monitor itself uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnUse {
    pub cpu_s: f64,
    /// share of one CPU since the start
    pub cpu_share: f64,
    /// missing if unknown
    pub memory_bytes: Option<u64>,
}

/// The server of `--server`.
#[derive(Clone, Debug, Default)]
pub struct ServerReport {
    /// why there are no figures, with a hint. Old figures would look like new ones
    pub error: Option<String>,
    /// the last answer of `advise`
    pub advise: Option<AdviseReport>,
    pub fast_timing: Option<FastTiming>,
    /// the plan nodes with the longest times, from the profile of pg_fast_timing
    pub plan_nodes: Vec<PlanNode>,
}

/// A node of a plan, summed over all executions.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
pub struct PlanNode {
    pub queryid: String,
    /// hash of the plan's shape
    pub plan: String,
    pub node: u32,
    /// with its relation: `Seq Scan on orders`
    pub kind: String,
    /// time without the nodes below it
    pub seconds: f64,
    /// its part of the plan's time
    pub share: f64,
    /// 1 for the node with the longest time of its plan
    pub node_rank: u32,
    /// since the first execution with this plan
    pub plan_age_s: f64,
}

/// The figures of `pg_fast_timing_info()` and `pg_stat_fast_timing`, with the names of their columns.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
pub struct FastTiming {
    pub method: String,
    pub clock: String,
    pub ticker: String,
    /// `session` or `server`
    pub scope: String,
    pub call_cost_ns: Option<f64>,
    pub statements: f64,
    pub exact_nodes: f64,
    pub estimated_nodes: f64,
    pub node_calls: f64,
    pub without_tsc: f64,
    pub without_ticks: f64,
}
