//! What the CPU says of its counter, and which CPUs there are.

use super::Host;
use super::names::field;
use crate::host::measure;
use crate::report::Fact;
use serde::{Deserialize, Serialize};
use timing_clock::{Architecture, Features};

/// What CPUID says that /proc/cpuinfo does not: kept beside a captured tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CapturedCpuid {
    pub hypervisor_signature: Option<String>,
    pub leaf_15_hz: Option<f64>,
    pub leaf_16_hz: Option<f64>,
    pub hypervisor_hz: Option<f64>,
}

/// The flags that speak of the counter.
const COUNTER_FLAGS: &[&str] = &[
    "tsc",
    "rdtscp",
    "constant_tsc",
    "nonstop_tsc",
    "nonstop_tsc_s3",
    "tsc_known_freq",
    "tsc_reliable",
    "tsc_adjust",
    "hypervisor",
];

impl Host {
    /// Live: from CPUID. Captured: from the flags in /proc/cpuinfo, which name the same bits, and
    /// what was kept of CPUID.
    pub fn features(&self) -> Fact<Features> {
        if self.is_live() {
            return Fact::Known(Features::of_this_cpu());
        }
        let cpuid: CapturedCpuid = self.captured_json("cpuid").known().cloned().unwrap_or_default();
        if let Some(sysctls) = self.sysctls() {
            return Fact::Known(Features {
                rdtscp: true,
                invariant: sysctls.invariant_tsc(),
                hypervisor: sysctls.text("kern.vm_guest").known().is_some_and(|guest| guest != "none"),
                ..Features::default()
            });
        }
        let architecture = match self.architecture().known().map(String::as_str) {
            Some("aarch64") => Architecture::Aarch64,
            _ => Architecture::X86_64,
        };
        self.cpuinfo().and_then(|text| match (field(&text, "flags"), architecture) {
            (Some(flags), _) => Fact::Known(Features { architecture, ..with_cpuid(features_from_flags(flags), cpuid) }),
            (None, Architecture::Aarch64) => Fact::Known(Features { architecture, ..Features::default() }),
            (None, _) => Fact::unavailable("/proc/cpuinfo has no flags"),
        })
    }

    /// Of the flags, those that speak of the counter, as the kernel shows them.
    pub fn cpu_flags(&self) -> Fact<Vec<String>> {
        self.cpuinfo().and_then(|text| match field(&text, "flags").or_else(|| field(&text, "Features")) {
            Some(flags) => {
                let flags = flags.split_whitespace().filter(|flag| COUNTER_FLAGS.contains(flag));
                Fact::Known(flags.map(Into::into).collect())
            }
            None => Fact::unavailable("/proc/cpuinfo has no flags"),
        })
    }

    /// The CPUs that this process may use. A captured tree does not tell.
    pub fn allowed_cpus(&self) -> Fact<Vec<usize>> {
        match self.is_live() {
            true => measure::allowed().map_err(|e| crate::human::reason(&e)).into(),
            false => Fact::unavailable("a captured tree does not tell"),
        }
    }

    /// The CPUs that the kernel runs on.
    pub fn online_cpus(&self) -> Fact<Vec<usize>> {
        let path = "/sys/devices/system/cpu/online";
        self.read_line(path).and_then(|list| match cpu_list(&list) {
            Some(cpus) => Fact::Known(cpus),
            None => Fact::unavailable(format!("{path}: not a list of CPUs")),
        })
    }
}

/// `nonstop_tsc` and `constant_tsc` together are what Linux makes of CPUID's invariant bit.
fn features_from_flags(flags: &str) -> Features {
    let has = |name| flags.split_whitespace().any(|flag| flag == name);
    Features {
        rdtscp: has("rdtscp"),
        invariant: has("nonstop_tsc") && has("constant_tsc"),
        tsc_adjust: has("tsc_adjust"),
        hypervisor: has("hypervisor"),
        ..Features::default()
    }
}

fn with_cpuid(features: Features, cpuid: CapturedCpuid) -> Features {
    Features {
        hypervisor_signature: cpuid.hypervisor_signature,
        leaf_15_hz: cpuid.leaf_15_hz,
        leaf_16_hz: cpuid.leaf_16_hz,
        hypervisor_hz: cpuid.hypervisor_hz,
        ..features
    }
}

/// The kernel's list form, such as `0-3,8`.
pub(super) fn cpu_list(list: &str) -> Option<Vec<usize>> {
    // No machine has more: a longer range is junk.
    const MOST: usize = 1 << 16;
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to > MOST || cpus.len() > MOST {
            return None;
        }
        cpus.extend(from..=to);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list("0"), Some(vec![0]));
        for junk in ["", "x", "5-3", "0-99999999999", "1-", "0-0-0"] {
            assert_eq!(cpu_list(junk), None, "{junk}");
        }
    }

    #[test]
    fn flags_name_the_bits() {
        let features = features_from_flags("fpu rdtscp constant_tsc nonstop_tsc hypervisor");
        assert!(features.rdtscp && features.invariant && features.hypervisor && !features.tsc_adjust);
        assert!(!features_from_flags("constant_tsc").invariant);
    }
}
