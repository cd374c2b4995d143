//! What the machine says of itself.

use super::Fact;
use schemars::JsonSchema;
use serde::Serialize;

/// Names and versions, for the first line and for whoever reads the report elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostFacts {
    pub name: Fact<String>,
    /// system and release, such as `Linux 6.18.44`
    pub kernel: Fact<String>,
    pub architecture: Fact<String>,
    pub cpu_model: Fact<String>,
    /// what it is a guest of, such as `KVM`; `none` on bare metal
    pub virtualization: Fact<String>,
    pub uptime_seconds: Fact<f64>,
}

impl HostFacts {
    pub fn unavailable(why: &str) -> HostFacts {
        let no = || Fact::unavailable(why);
        HostFacts {
            name: no(),
            kernel: no(),
            architecture: no(),
            cpu_model: no(),
            virtualization: no(),
            uptime_seconds: Fact::unavailable(why),
        }
    }
}

/// The hardware that the kernel's clock stands on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Clocksource {
    pub current: Fact<String>,
    pub available: Fact<Vec<String>>,
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Skew {
    /// the clock that was read
    pub clock: String,
    pub a: usize,
    pub b: usize,
    pub low_ns: f64,
    pub high_ns: f64,
    /// messages that passed between the two
    pub passes: u64,
}

/// What else went on while the clocks were read: it tells interruptions apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Activity {
    /// times that the kernel gave this CPU to somebody else
    pub involuntary_context_switches: u64,
    /// time that the hypervisor ran something else on our CPUs, all CPUs together, in ms
    pub steal_ms: Option<f64>,
}
