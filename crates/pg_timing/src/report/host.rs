//! The report of a host check, with the facts about the host and what its kernel log says about clocks. The serde names are the JSON
//! contract.

use super::{ClockReport, Drift, Fact, Finding, SYSTEM, TscReport, Verdict};
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

/// Names, versions and settings that affect clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostFacts {
    /// a captured tree does not contain it
    pub name: Fact<String>,
    /// system and release, like `Linux 6.18.44`
    pub kernel: Fact<String>,
    pub architecture: Fact<String>,
    pub cpu_model: Fact<String>,
    /// hypervisor, like `KVM`; `none` on bare metal
    pub virtualization: Fact<String>,
    /// platform of the hypervisor, like `AWS Nitro`, if it shows
    pub platform: Fact<String>,
    /// CPU flags about the counter
    pub cpu_flags: Fact<Vec<String>>,
    /// boot parameters about clocks
    pub boot_parameters: Fact<Vec<String>>,
    /// number of suspends since boot
    pub suspends: Fact<u64>,
    pub ntp: Fact<Ntp>,
    pub uptime_seconds: Fact<f64>,
}

/// NTP's correction of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ntp {
    /// the clock is synchronized
    pub synchronized: bool,
    /// current correction in ppm
    pub frequency_ppm: f64,
}

impl HostFacts {
    /// Returns the boot parameters about clocks, as far as they are known.
    pub fn parameters(&self) -> &[String] {
        self.boot_parameters.known().map_or(&[], Vec::as_slice)
    }

    /// Returns the boot parameter that selects the clock source, and the name of that. Linux still accepts the old `clock=` for
    /// `clocksource=`, with the old name `pmtmr` for acpi_pm. The last one counts.
    pub fn clocksource_parameter(boot_parameters: &[String]) -> Option<(&str, &str)> {
        boot_parameters.iter().rev().find_map(|word| match word.split_once('=')? {
            ("clock", "pmtmr") => Some((word.as_str(), "acpi_pm")),
            ("clocksource" | "clock", name) => Some((word.as_str(), name)),
            _ => None,
        })
    }

    /// Returns whether this is a virtual machine.
    pub fn is_guest(&self) -> bool {
        self.virtualization.known().is_some_and(|guest| guest != "none")
    }
}

/// The kernel's clock sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Clocksource {
    pub current: Fact<String>,
    pub available: Fact<Vec<String>>,
    /// clock source before, if it changed during the measurement
    pub before: Option<String>,
}

/// The CPUs, and the skew between their counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cpus {
    /// online CPUs
    pub online: Fact<Vec<usize>>,
    /// CPUs that this process may use
    pub allowed: Fact<Vec<usize>>,
    pub skew: Vec<Skew>,
    /// why the skew of some or all CPUs is missing
    pub skew_unavailable: Option<String>,
}

impl Cpus {
    /// Returns the largest offset between two CPUs in ns, for one clock: what is certain, and what is possible.
    pub fn largest_offset(&self, clock: &str) -> Option<(f64, f64)> {
        let pairs = self.skew.iter().filter(|skew| skew.clock == clock);
        // If the bounds include 0, the offset may be 0.
        let offsets = pairs.map(|skew| (skew.low_ns.max(-skew.high_ns).max(0.0), skew.high_ns.max(-skew.low_ns)));
        offsets.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
    }
}

/// Bounds of CPU `b`'s reading minus CPU `a`'s reading at the same instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Skew {
    /// name of the clock
    pub clock: String,
    pub a: usize,
    pub b: usize,
    pub low_ns: f64,
    pub high_ns: f64,
    /// the offset changed during the measurement: the rates differ, or a clock went back
    pub moving: bool,
    /// number of messages between the CPUs
    pub passes: u64,
}

/// Other activity during the measurement. It shows the cause of interruptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Activity {
    /// involuntary context switches
    pub involuntary_context_switches: u64,
    /// steal time of all CPUs together, in ms
    pub steal_ms: Option<f64>,
    /// number of suspends
    pub suspends: Option<u64>,
    /// duration of the reading of all clocks, in ms
    pub period_ms: Option<f64>,
    /// time in this period in which the measuring thread waited for a CPU (the scheduler's run delay), in ms
    pub run_delay_ms: Option<f64>,
    /// number of times that the measuring thread got a CPU
    pub timeslices: Option<u64>,
    /// time for which a CPU quota stopped the process's cgroup (version 2) or a parent of it, on all CPUs together, in ms
    pub throttled_ms: Option<f64>,
}

impl Activity {
    /// Returns the share of the period in which the measuring thread waited for a CPU.
    pub fn waiting_share(&self) -> Option<f64> {
        let (waited, period) = self.run_delay_ms.zip(self.period_ms)?;
        (period > 0.0).then(|| (waited / period).clamp(0.0, 1.0))
    }

    /// Returns the sums or differences of both activities. What one of them does not know is unknown.
    pub fn combine(&self, other: &Activity, ms: fn(f64, f64) -> f64, count: fn(u64, u64) -> u64) -> Activity {
        let both_ms = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| ms(a, b));
        let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| count(a, b));
        let switches = [self, other].map(|activity| activity.involuntary_context_switches);
        Activity {
            involuntary_context_switches: count(switches[0], switches[1]),
            steal_ms: both_ms(self.steal_ms, other.steal_ms),
            suspends: both(self.suspends, other.suspends),
            period_ms: both_ms(self.period_ms, other.period_ms),
            run_delay_ms: both_ms(self.run_delay_ms, other.run_delay_ms),
            timeslices: both(self.timeslices, other.timeslices),
            throttled_ms: both_ms(self.throttled_ms, other.throttled_ms),
        }
    }
}

/// The summary of the kernel log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelReport {
    /// the kernel's messages about clocks since boot, in order; a repeated one appears once
    pub messages: Vec<KernelMessage>,
    /// number of recognized lines since boot; if it is 0, the log proves nothing about clocks
    pub recognized_lines: usize,
    /// why the log cannot be from this host; then it was judged alone, and nothing was measured
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
    pub stamp: Option<String>,
    /// the kernel's own text
    pub text: String,
    /// what it means
    pub meaning: String,
    pub level: MessageLevel,
    /// how often it came; the figures in `text` are those of the first one
    pub times: u64,
    /// seconds since boot of the last one, if there were several
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

impl KernelReport {
    /// Returns the log's last clock source if it is not the current one. Then the log is old, or from another host.
    pub fn other_last_clocksource(&self, current: &str) -> Option<&str> {
        self.switches.last().map(|last| last.to.as_str()).filter(|last| *last != current)
    }

    /// Returns the last switch after the boot: the clock source before, the new one, and seconds since boot.
    pub fn late_switch(&self) -> Option<(Option<&str>, &str, f64)> {
        let late = |switch: &Switch| switch.seconds.filter(|seconds| *seconds > BOOT_COMPLETE_S);
        let nth = self.switches.iter().rposition(|switch| late(switch).is_some())?;
        let from = nth.checked_sub(1).map(|before| self.switches[before].to.as_str());
        Some((from, &self.switches[nth].to, late(&self.switches[nth])?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_parameter_of_either_name_selects_the_clock_source() {
        for (line, word, name) in [
            ("clocksource=hpet", "clocksource=hpet", "hpet"),
            ("clock=acpi_pm", "clock=acpi_pm", "acpi_pm"),
            ("clock=pmtmr", "clock=pmtmr", "acpi_pm"),
            ("clocksource=tsc nohz=off clock=hpet", "clock=hpet", "hpet"),
        ] {
            let words: Vec<String> = line.split(' ').map(String::from).collect();
            assert_eq!(HostFacts::clocksource_parameter(&words), Some((word, name)), "{line}");
        }
        assert_eq!(
            HostFacts::clocksource_parameter(&["clocksource.verify_n_cpus=8".into(), "tsc=reliable".into()]),
            None
        );
    }
}
