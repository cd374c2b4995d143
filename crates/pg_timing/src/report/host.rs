//! Facts about the host.

use super::Fact;
use serde::{Deserialize, Serialize};

/// Names, versions and settings that affect clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// kind of container, like `docker`; `none` outside of containers
    pub container: Fact<String>,
    /// CPU flags about the counter
    pub cpu_flags: Fact<Vec<String>>,
    /// boot parameters about clocks
    pub boot_parameters: Fact<Vec<String>>,
    pub numa_nodes: Fact<usize>,
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

/// A boot parameter that selects a clock source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClocksourceParameter<'a> {
    /// as on the kernel's command line
    pub word: &'a str,
    /// the clock source
    pub name: &'a str,
}

impl<'a> ClocksourceParameter<'a> {
    /// Returns the parameter that counts. Linux still accepts the old `clock=` for `clocksource=`, with the old name `pmtmr`
    /// for acpi_pm. The last one counts.
    pub fn of(boot_parameters: &'a [String]) -> Option<ClocksourceParameter<'a>> {
        boot_parameters.iter().rev().find_map(|word| match word.split_once('=')? {
            ("clock", "pmtmr") => Some(ClocksourceParameter { word, name: "acpi_pm" }),
            ("clocksource" | "clock", name) => Some(ClocksourceParameter { word, name }),
            _ => None,
        })
    }
}

impl HostFacts {
    /// Returns the boot parameters about clocks, as far as they are known.
    pub fn parameters(&self) -> &[String] {
        self.boot_parameters.known().map_or(&[], Vec::as_slice)
    }

    /// Returns whether this is a virtual machine.
    pub fn is_guest(&self) -> bool {
        self.virtualization.known().is_some_and(|guest| guest != "none")
    }

    pub fn unavailable(why: &str) -> HostFacts {
        let text = || Fact::unavailable(why);
        HostFacts {
            name: text(),
            kernel: text(),
            architecture: text(),
            cpu_model: text(),
            virtualization: text(),
            platform: text(),
            container: text(),
            cpu_flags: Fact::unavailable(why),
            boot_parameters: Fact::unavailable(why),
            numa_nodes: Fact::unavailable(why),
            suspends: Fact::unavailable(why),
            ntp: Fact::unavailable(why),
            uptime_seconds: Fact::unavailable(why),
        }
    }
}

/// The kernel's clock sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Clocksource {
    pub current: Fact<String>,
    pub available: Fact<Vec<String>>,
    /// clock source before, if it changed during the measurement
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// The CPUs, and the skew between their counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cpus {
    /// online CPUs
    pub online: Fact<Vec<usize>>,
    /// CPUs that this process may use
    pub allowed: Fact<Vec<usize>>,
    pub skew: Vec<Skew>,
    /// why the skew of some or all CPUs is missing
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// time for which CPU quotas stopped the process's cgroup and its parents, on all CPUs together, in ms
    pub throttled_ms: Option<f64>,
}

impl Activity {
    /// Returns the share of the period in which the measuring thread waited for a CPU.
    pub fn waiting_share(&self) -> Option<f64> {
        let (waited, period) = self.run_delay_ms.zip(self.period_ms)?;
        (period > 0.0).then(|| (waited / period).clamp(0.0, 1.0))
    }
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
            assert_eq!(ClocksourceParameter::of(&words), Some(ClocksourceParameter { word, name }), "{line}");
        }
        assert_eq!(ClocksourceParameter::of(&["clocksource.verify_n_cpus=8".into(), "tsc=reliable".into()]), None);
    }
}
