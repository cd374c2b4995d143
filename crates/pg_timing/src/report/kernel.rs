//! What the kernel log says about clocks.

use serde::{Deserialize, Serialize};

/// The summary of the kernel log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelReport {
    /// the kernel's messages about clocks since boot, in order; a repeated one appears once
    #[serde(default)]
    pub messages: Vec<KernelMessage>,
    /// number of recognized lines since boot; if it is 0, the log proves nothing about clocks
    #[serde(default)]
    pub recognized_lines: usize,
    /// why the log cannot be from this host; then it was judged alone, and nothing was measured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_host: Option<String>,
    /// the log goes back to the boot, so it is complete
    pub since_boot: bool,
    pub demotion: Option<Demoted>,
    /// a clock source was marked unstable or failed a check
    pub unstable: bool,
    /// clock sources that the kernel switched to since boot
    pub switches: Vec<Switch>,
    /// the firmware changed a CPU's counter
    pub firmware_bug: bool,
    /// the kernel warned that the TSC's claimed rate differs from its measured rate
    pub rate_warning: bool,
    /// a clock source that was requested and refused permanently
    pub refused: Option<String>,
}

/// A message of the kernel about clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelMessage {
    /// seconds since boot
    pub seconds: Option<f64>,
    /// wall-clock time, as printed before the message
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
    /// the kernel's own text
    pub text: String,
    /// what it means
    pub meaning: String,
    pub level: MessageLevel,
    /// how often it came; the figures in `text` are those of the first one
    pub times: u64,
    /// seconds since boot of the last one, if there were several
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seconds: Option<f64>,
}

/// How important a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageLevel {
    Detail,
    /// worth showing, and no fault
    Note,
    /// the kernel found a fault
    Fault,
}

/// By this time the kernel has selected its clock source: refining the TSC's rate takes a second, drivers take longer.
const BOOT_COMPLETE_S: f64 = 60.0;

/// A switch after the boot.
pub struct LateSwitch<'a> {
    pub from: Option<&'a str>,
    pub to: &'a str,
    /// seconds since boot
    pub seconds: f64,
}

impl KernelReport {
    /// Returns whether the log has a message that a screen should show.
    pub fn has_notes(&self) -> bool {
        self.messages.iter().any(|message| message.level >= MessageLevel::Note)
    }

    /// Returns whether the log shows a clock problem.
    pub fn has_problems(&self) -> bool {
        self.demotion.is_some() || self.unstable || self.firmware_bug || self.rate_warning || self.refused.is_some()
    }

    /// Returns the log's last clock source if it is not the current one. Then the log is old, or from another host.
    pub fn other_last_clocksource(&self, current: &str) -> Option<&str> {
        self.switches.last().map(|last| last.to.as_str()).filter(|last| *last != current)
    }

    /// Returns the last switch after the boot.
    pub fn late_switch(&self) -> Option<LateSwitch<'_>> {
        let late = |switch: &Switch| switch.seconds.filter(|seconds| *seconds > BOOT_COMPLETE_S);
        let nth = self.switches.iter().rposition(|switch| late(switch).is_some())?;
        let (switch, before) = (&self.switches[nth], nth.checked_sub(1).map(|nth| &self.switches[nth]));
        Some(LateSwitch { from: before.map(|before| before.to.as_str()), to: &switch.to, seconds: late(switch)? })
    }
}

/// How the kernel marked the TSC unstable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Demoted {
    /// like `7823 s after boot`, or the log's own timestamp
    pub when: Option<String>,
    /// it happened during boot, so it will happen again at the next boot
    pub at_boot: bool,
    pub cpu: Option<u32>,
    /// `tsc`, or `tsc-early` during boot
    #[serde(default)]
    pub clocksource: String,
    /// the kernel's text after "due to"
    pub reason: Option<String>,
    /// the reason in a few words
    pub because: String,
    /// why this kind of kernel verdict may be wrong
    pub doubt: Option<String>,
}

/// The kernel switched to a clock source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Switch {
    /// seconds since boot
    pub seconds: Option<f64>,
    pub to: String,
}
