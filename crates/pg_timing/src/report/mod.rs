//! The data between measuring and rendering. Every output is a function of a report, and JSON can be read back.
//!
//! The serde names are the JSON contract. The JSON Schemas in docs/ are generated from these types.

mod advise;
mod call_cost;
mod classic;
mod clock;
pub mod compare;
pub mod document;
mod drift;
mod explain;
mod finding;
pub mod finding_id;
mod host;
mod kernel;
mod log;
mod measured;
mod monitor;
mod read_cost;
pub mod run_mode;
#[cfg(test)]
mod schema;
mod self_time;
mod test;
pub mod thresholds;
mod tsc;

mod clocksource;
mod clocksource_table;

pub use crate::statistics::Range;
pub use advise::{
    Action, AdviseReport, CoreShare, CoreShareLimits, EventsAre, LogTimingAnswer, NodeCallsReport, PeriodCalls,
    SettingAdvice,
};
pub use call_cost::CallCost;
pub use classic::ClassicReport;
pub use clock::{
    AccessPath, Bin, ClockReport, GOOD_READ_NS, Gaps, INTERRUPTED_SHARE, Percentiles, SETTABLE_CLOCK, SYSTEM,
    VISIBLE_NS,
};
pub use clocksource::{ClocksourceList, ClocksourceRow, ClocksourceState, SwitchEvent, System};
pub use clocksource_table::{ClocksourceTraits, Grade, Vdso, best_first, traits_of};
pub use drift::{Drift, DriftStep, QUARTZ_PPM};
pub use explain::{Capture, ExplainReport, ExplainedNode, LiveRuns, PlanFormat, PlanSource, RunSample, Spread, Timed};
pub use finding::{Finding, Fix, Severity, Verdict};
pub use host::{Activity, Clocksource, ClocksourceParameter, Cpus, HostFacts, Ntp, Skew};
pub use kernel::{Demoted, KernelMessage, KernelReport, LateSwitch, MessageLevel, Switch};
pub use log::{LogHost, LogPlace, LogReport, LogTotal, LoggedStatement, RankChange, SkippedPlans};
pub use measured::Measured;
pub use monitor::{
    ClockTotals, Collector, CounterRate, EventKind, FastTiming, MonitorEvent, MonitorReport, OwnUse, ServerReport,
    WatchedClock, WatchedFinding,
};
pub use read_cost::ReadCost;
pub use self_time::SelfTime;
pub use test::{ObservedDuration, TestReport, TestedClock, TscSummary};
pub use tsc::{COUNTER, ClaimReport, TscReport};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Statements take ms, and their calls take ns.
pub const NS_PER_MS: f64 = 1e6;
pub const MS_PER_NS: f64 = 1.0 / NS_PER_MS;

/// A fact, or the reason why it is not available. In JSON: the value, or `{"unavailable": "why"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Fact<T> {
    Known(T),
    Unavailable { unavailable: String },
}

impl<T> Fact<T> {
    pub fn unavailable(why: impl Into<String>) -> Fact<T> {
        Fact::Unavailable { unavailable: why.into() }
    }

    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unavailable { .. } => None,
        }
    }

    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => f(value),
            Fact::Unavailable { unavailable } => Fact::Unavailable { unavailable },
        }
    }

    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(f(value)),
            Fact::Unavailable { unavailable } => Fact::Unavailable { unavailable },
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Fact<T> {
    fn from(result: Result<T, E>) -> Fact<T> {
        match result {
            Ok(value) => Fact::Known(value),
            Err(why) => Fact::unavailable(why.to_string()),
        }
    }
}

/// The source of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// measured on this host
    Measured,
    /// a captured tree (`--root`): nothing was measured now
    Captured,
    /// a pg_test_timing output (`read`)
    PgTestTiming,
}

/// The report of a host check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    pub origin: Origin,
    /// time of day when the measurement ended, like `2026-11-25T18:55:06Z`; missing if the figures are not from a measurement
    /// of this program on this host
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// measuring time in seconds
    pub measured_seconds: f64,
    /// stopped early: the figures are from a shorter time
    pub interrupted: bool,
    /// parts of the pg_test_timing output are missing
    pub excerpt: bool,
    /// which parts are missing, or which figures contradict each other
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    pub host: HostFacts,
    pub clocks: Vec<ClockReport>,
    pub tsc: TscReport,
    pub cpus: Cpus,
    pub clocksource: Clocksource,
    pub kernel: Fact<KernelReport>,
    pub activity: Fact<Activity>,
    /// drift between clocks
    pub drift: Vec<Drift>,
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
    /// set by the checks
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_cost_limits_ns: Option<ReadCostLimits>,
}

/// The read costs in ns above which `clock-slow` warns, and is critical.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadCostLimits {
    pub warning: f64,
    pub critical: f64,
}

impl Report {
    /// Returns the kernel log, or why it proves nothing.
    pub fn kernel_log(&self) -> Result<&KernelReport, &'static str> {
        match self.kernel.known() {
            None => Err("the kernel log is not readable"),
            Some(kernel) if kernel.recognized_lines == 0 => Err("the kernel log has no recognized line about clocks"),
            Some(kernel) => Ok(kernel),
        }
    }

    /// Returns a report without facts, for the reason `why`.
    pub fn empty(origin: Origin, why: &str) -> Report {
        Report {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            origin,
            measured_at: None,
            measured_seconds: 0.0,
            interrupted: false,
            excerpt: false,
            missing: None,
            host: HostFacts::unavailable(why),
            clocks: Vec::new(),
            tsc: TscReport::unavailable(why),
            cpus: Cpus {
                online: Fact::unavailable(why),
                allowed: Fact::unavailable(why),
                skew: Vec::new(),
                skew_unavailable: Some(why.into()),
            },
            clocksource: Clocksource {
                current: Fact::unavailable(why),
                available: Fact::unavailable(why),
                before: None,
            },
            kernel: Fact::unavailable(why),
            activity: Fact::unavailable(why),
            drift: Vec::new(),
            findings: Vec::new(),
            verdict: Verdict { severity: Severity::Unknown, summary: why.into() },
            read_cost_limits_ns: None,
        }
    }

    /// Reads a report from JSON. Another version may have written it: missing fields get the values of an empty report.
    pub fn from_json(json: &[u8]) -> Option<Report> {
        let written: Value = serde_json::from_slice(json).ok()?;
        written.get("clocks")?.as_array()?;
        Report::from_value(written).ok()
    }

    /// Reads a report from a JSON object, as [`Report::from_json`] does. Returns an error if a field has an unexpected type.
    pub fn from_value(written: Value) -> serde_json::Result<Report> {
        let mut empty = Report::empty(Origin::Measured, "not in the report");
        // A complete report omits this field if there is nothing to say.
        empty.cpus.skew_unavailable = None;
        let mut report = serde_json::to_value(empty)?;
        merge(&mut report, written);
        serde_json::from_value(report)
    }

    /// Returns the clock of that name, if it has figures.
    pub fn clock(&self, name: &str) -> Option<&ClockReport> {
        self.clocks.iter().find(|clock| clock.name == name && clock.unavailable.is_none())
    }

    /// Returns the read cost of the clock of that name in ns, if it is a positive number. Another program may have
    /// written the report.
    pub fn read_cost_ns(&self, name: &str) -> Option<f64> {
        let clock = self.clocks.iter().find(|clock| clock.name == name)?;
        clock.read_ns.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// Returns PostgreSQL's clock, if it has figures.
    pub fn system(&self) -> Option<&ClockReport> {
        self.clock(SYSTEM)
    }
}

/// Replaces the values in `base` with those in `changes`, object by object.
fn merge(base: &mut Value, changes: Value) {
    match (base, changes) {
        (Value::Object(base), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(base.entry(key).or_insert(Value::Null), change);
            }
        }
        (base, change) => *base = change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole JSON of every captured host reads back, and writes the same JSON again.
    #[test]
    fn reports_of_captured_hosts_survive_a_round_trip() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/snapshots");
        let mut hosts = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if !(name.contains("__captured__") && name.ends_with(".json.snap")) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let json = &text[text.find("\n{").unwrap()..];
            let report = Report::from_json(json.as_bytes()).unwrap_or_else(|| panic!("{name}"));
            let written: Value = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_value(&report).unwrap(), written, "{name}");
            hosts += 1;
        }
        assert!(hosts > 20, "{hosts}");
    }

    #[test]
    fn missing_fields_are_unavailable() {
        let report = Report::from_json(br#"{"clocks": [{"name": "system", "read_ns": 20.0}]}"#).unwrap();
        assert_eq!(report.system().and_then(|clock| clock.read_ns), Some(20.0));
        assert_eq!(report.host.kernel, Fact::unavailable("not in the report"));
        for other in ["", "{}", "[1]", r#"{"clocks": 7}"#, r#"{"clocks": [7]}"#] {
            assert!(Report::from_json(other.as_bytes()).is_none(), "{other}");
        }
    }
}
