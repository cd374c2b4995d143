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
