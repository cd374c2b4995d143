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

impl HostFacts {
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
    #[serde(default)]
    pub suspends: Option<u64>,
}
