//! What the kernel's log says of clocks.

use schemars::JsonSchema;
use serde::Serialize;

/// The log, told and boiled down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelReport {
    /// in order and in plain words
    pub story: Vec<String>,
    /// the log reaches back to the boot: what is not in it was not said
    pub since_boot: bool,
    pub demotion: Option<Demoted>,
    /// a clock source, the TSC or another, was marked unstable or failed a check
    pub unstable: bool,
    /// the clock sources taken since boot
    pub switches: Vec<Switch>,
    /// the firmware had changed a CPU's counter
    pub firmware_bug: bool,
    /// the kernel warned that the TSC's claimed rate is not the measured one
    pub rate_warning: bool,
    /// a clock source that was asked for and refused, for good
    pub refused: Option<String>,
}

/// By then a kernel has chosen: the TSC's own refinement takes a second, drivers some more.
const BOOTED_S: f64 = 60.0;

/// A switch that the kernel did not make as it booted.
pub struct LateSwitch<'a> {
    pub from: Option<&'a str>,
    pub to: &'a str,
    /// since boot
    pub seconds: f64,
}

impl KernelReport {
    /// Whether anything in it speaks against a clock.
    pub fn speaks_against(&self) -> bool {
        self.demotion.is_some() || self.unstable || self.firmware_bug || self.rate_warning || self.refused.is_some()
    }

    /// The clock source that the log ends on, if that is not the one in use: then it is an old log, or
    /// another host's.
    pub fn ends_elsewhere(&self, now: &str) -> Option<&str> {
        self.switches.last().map(|last| last.to.as_str()).filter(|last| *last != now)
    }

    /// The last switch after boot.
    pub fn late_switch(&self) -> Option<LateSwitch<'_>> {
        let late = |switch: &Switch| switch.seconds.filter(|seconds| *seconds > BOOTED_S);
        let nth = self.switches.iter().rposition(|switch| late(switch).is_some())?;
        let (switch, before) = (&self.switches[nth], nth.checked_sub(1).map(|nth| &self.switches[nth]));
        Some(LateSwitch { from: before.map(|before| before.to.as_str()), to: &switch.to, seconds: late(switch)? })
    }
}

/// How the TSC was given up.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Demoted {
    /// such as `at 7823 s`, or the log's own stamp
    pub when: Option<String>,
    /// since boot
    pub seconds: Option<f64>,
    /// as the machine came up: the same will be found at the next boot
    pub at_boot: bool,
    pub cpu: Option<u32>,
    pub watchdog: Option<String>,
    pub skew_ns: Option<i64>,
    pub interval_ns: Option<u64>,
    /// the kernel's own words behind "due to"
    pub reason: Option<String>,
    /// why, in a phrase
    pub because: String,
    /// why this verdict of the kernel may be wrong, where that kind is known to be
    pub doubt: Option<String>,
}

/// A clock source taken.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Switch {
    /// since boot
    pub seconds: Option<f64>,
    pub to: String,
}
