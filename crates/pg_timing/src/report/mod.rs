//! What was found out about a host: the data between measuring and showing. Every output is a
//! function of a [`Report`].
//!
//! The serde names here are the JSON contract: `docs/check.schema.json` is generated from them.

mod advise;
mod classic;
mod clock;
mod drift;
mod explain;
mod finding;
mod host;
mod kernel;
mod measured;
mod tsc;

pub use advise::{Action, AdviseReport, CoreShare, EventsAre, ReadCost, SettingAdvice};
pub use classic::ClassicReport;
pub use clock::{Bin, ClockReport, Gaps, Percentiles, SYSTEM, Through};
pub use drift::{Drift, DriftStep};
pub use explain::{Capture, ExplainReport, ExplainedNode, LiveRuns, Range, Timed};
pub use finding::{Finding, Fix, Severity, Verdict};
pub use host::{Activity, Clocksource, Cpus, HostFacts, Ntp, Skew};
pub use kernel::{Demoted, KernelReport, LateSwitch, Switch};
pub use measured::Measured;
pub use tsc::{COUNTER, ClaimReport, TscReport};

use schemars::JsonSchema;
use serde::Serialize;

/// A fact that may be unavailable, and then says why. In JSON: the value, or `{"unavailable": "why"}`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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

/// Where the figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// measured on this host
    Measured,
    /// a captured tree (`--root`): nothing was measured
    Captured,
    /// the output of a pg_test_timing (`read`)
    PgTestTiming,
}

/// Everything that one run found out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// version of this JSON's shape
    pub schema_version: u32,
    /// version of pg_timing
    pub version: &'static str,
    pub origin: Origin,
    /// time spent measuring, in seconds
    pub measured_seconds: f64,
    /// stopped before its time: the figures are what was had by then
    pub interrupted: bool,
    /// of a pg_test_timing output: parts of it are missing
    pub excerpt: bool,
    pub host: HostFacts,
    pub clocks: Vec<ClockReport>,
    pub tsc: TscReport,
    pub cpus: Cpus,
    pub clocksource: Clocksource,
    pub kernel: Fact<KernelReport>,
    pub activity: Fact<Activity>,
    /// how the clocks ran against each other
    pub drift: Vec<Drift>,
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
}

impl Report {
    /// A report of which nothing is known yet, for the reason `why`.
    pub fn empty(origin: Origin, why: &str) -> Report {
        Report {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION"),
            origin,
            measured_seconds: 0.0,
            interrupted: false,
            excerpt: false,
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
        }
    }

    /// The clock of that name, if it has figures.
    pub fn clock(&self, name: &str) -> Option<&ClockReport> {
        self.clocks.iter().find(|clock| clock.name == name && clock.unavailable.is_none())
    }

    /// The clock that PostgreSQL reads.
    pub fn system(&self) -> Option<&ClockReport> {
        self.clock(SYSTEM)
    }
}
