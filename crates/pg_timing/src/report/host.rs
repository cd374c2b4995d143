//! What the machine says of itself.

use super::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names, versions and settings that bear on clocks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostFacts {
    /// never in a captured tree
    pub name: Fact<String>,
    /// system and release, such as `Linux 6.18.44`
    pub kernel: Fact<String>,
    pub architecture: Fact<String>,
    pub cpu_model: Fact<String>,
    /// what it is a guest of, such as `KVM`; `none` on bare metal
    pub virtualization: Fact<String>,
    /// who runs that hypervisor, such as `AWS Nitro`, where it tells
    pub platform: Fact<String>,
    /// what kind of container this is, such as `docker`; `none`
    pub container: Fact<String>,
    /// of the CPU's flags, those that speak of its counter
    pub cpu_flags: Fact<Vec<String>>,
    /// of the kernel's boot parameters, those that speak of clocks
    pub boot_parameters: Fact<Vec<String>>,
    pub numa_nodes: Fact<usize>,
    /// times the machine was suspended since boot
    pub suspends: Fact<u64>,
    pub ntp: Fact<Ntp>,
    pub uptime_seconds: Fact<f64>,
}

/// What the kernel is told about its clock's rate by NTP or its like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ntp {
    /// somebody keeps the clock
    pub synchronized: bool,
    /// the correction in force, in ppm
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

/// The hardware that the kernel's clock stands on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Clocksource {
    pub current: Fact<String>,
    pub available: Fact<Vec<String>>,
    /// the source before, if it changed while the clocks were measured
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// The CPUs, and how far their counters are apart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cpus {
    /// the CPUs that this host runs on
    pub online: Fact<Vec<usize>>,
    /// the CPUs that this process may use
    pub allowed: Fact<Vec<usize>>,
    pub skew: Vec<Skew>,
    /// why there is no (further) skew
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew_unavailable: Option<String>,
}

/// What CPU `b`'s reading is above CPU `a`'s at the same instant: somewhere from `low_ns` to `high_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Skew {
    /// the clock that was read
    pub clock: String,
    pub a: usize,
    pub b: usize,
    pub low_ns: f64,
    pub high_ns: f64,
    /// the offset changed while it was measured: the clocks run apart, or one went back
    pub moving: bool,
    /// messages that passed between the two
    pub passes: u64,
}

/// What else went on while the clocks were read: it tells interruptions apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// times that the kernel gave this CPU to somebody else
    pub involuntary_context_switches: u64,
    /// time that the hypervisor ran something else on our CPUs, all CPUs together, in ms
    pub steal_ms: Option<f64>,
    /// times that the machine slept
    #[serde(default)]
    pub suspends: Option<u64>,
}
