//! The report of a host check. The serde names are the JSON contract.

use super::{
    Activity, ClockReport, Clocksource, Cpus, Demoted, Drift, Fact, Finding, HostFacts, KernelReport, SYSTEM,
    TscReport, Verdict,
};
use crate::json::possible;
use serde::{Deserialize, Serialize};

/// The source of the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// measured on this host
    #[default]
    Measured,
    /// a captured tree (`--root`): nothing was measured now
    Captured,
    /// a pg_test_timing output (`read`)
    PgTestTiming,
}

/// The report of a host check. Another version may have written it: missing facts are unavailable, and missing figures are 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Report {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
    pub origin: Origin,
    /// time of day when the measurement ended, like `2026-11-25T18:55:06Z`; missing if the figures are not from a measurement
    /// of this program on this host
    pub measured_at: Option<String>,
    /// measuring time in seconds
    pub measured_seconds: f64,
    /// stopped early: the figures are from a shorter time
    pub interrupted: bool,
    /// which parts are missing, or which figures contradict each other
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

    /// Returns a report without facts, and without figures for the reason `why`.
    pub fn empty(origin: Origin, why: &str) -> Report {
        Report {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            origin,
            tsc: TscReport::unavailable(why),
            cpus: Cpus { skew_unavailable: Some(why.into()), ..Cpus::default() },
            ..Report::default()
        }
    }

    /// Reads a report from JSON. The error follows the name of the file.
    pub fn from_json(json: &[u8]) -> Result<Report, String> {
        let written = serde_json::from_slice(json).ok().filter(|json: &serde_json::Value| json["clocks"].is_array());
        possible(written.ok_or("is not a host report")?).map_err(|why| format!("is a damaged host report: {why}"))
    }

    /// Returns how the kernel marked the TSC unstable, if its log shows that.
    pub fn demotion(&self) -> Option<&Demoted> {
        self.kernel.known()?.demotion.as_ref()
    }

    /// Returns the clock of that name, if it has figures.
    pub fn clock(&self, name: &str) -> Option<&ClockReport> {
        self.clocks.iter().find(|clock| clock.name == name && clock.unavailable.is_none())
    }

    /// Returns the read cost of the clock of that name in ns, if it is a positive number. Another program may have
    /// written the report.
    pub fn read_cost_ns(&self, name: &str) -> Option<f64> {
        self.clock(name)?.read_ns.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// Returns PostgreSQL's clock, if it has figures.
    pub fn system(&self) -> Option<&ClockReport> {
        self.clock(SYSTEM)
    }
}
