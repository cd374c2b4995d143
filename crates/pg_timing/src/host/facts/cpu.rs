//! The CPU's description of its counter, and the list of CPUs.

use super::Host;
use crate::host::measure;
use crate::report::Fact;
use serde::{Deserialize, Serialize};
use timing_clock::{Architecture, Features};

/// Values from CPUID that /proc/cpuinfo does not contain. A captured tree has them in an extra file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CapturedCpuid {
    pub hypervisor_signature: Option<String>,
    pub leaf_15_hz: Option<f64>,
    pub leaf_16_hz: Option<f64>,
    pub hypervisor_hz: Option<f64>,
}

/// The CPU flags about the counter.
const COUNTER_FLAGS: &str =
    "tsc rdtscp constant_tsc nonstop_tsc nonstop_tsc_s3 tsc_known_freq tsc_reliable tsc_adjust hypervisor";

impl Host {
    /// Returns the CPU's features: from CPUID, or in a captured tree from the flags in /proc/cpuinfo and the captured
    /// values of CPUID.
    pub fn features(&self) -> Fact<Features> {
        if self.is_live() {
            return Fact::Known(Features::of_this_cpu());
        }
        let cpuid: CapturedCpuid = self.captured_json("cpuid").known().cloned().unwrap_or_default();
        if let Some(sysctls) = self.sysctls() {
            let mut features = Features::default();
            features.rdtscp = true;
            features.invariant = sysctls.invariant_tsc();
            features.hypervisor = sysctls.text("kern.vm_guest").known().is_some_and(|guest| guest != "none");
            return Fact::Known(features);
        }
        let architecture = match self.architecture().known().map(String::as_str) {
            Some("aarch64") => Architecture::Aarch64,
            _ => Architecture::X86_64,
        };
        self.cpuinfo().and_then(|text| match (cpuinfo_field(&text, "flags"), architecture) {
            (Some(flags), _) => Fact::Known(captured_features(architecture, flags, cpuid)),
            (None, Architecture::Aarch64) => Fact::Known(captured_features(architecture, "", CapturedCpuid::default())),
            (None, _) => Fact::unavailable("/proc/cpuinfo has no flags"),
        })
    }

    /// Returns the CPU flags about the counter, with the kernel's names.
    pub fn cpu_flags(&self) -> Fact<Vec<String>> {
        let about_counter = |flag: &&str| COUNTER_FLAGS.split(' ').any(|known| known == *flag);
        self.cpuinfo().and_then(|text| {
            let flags = cpuinfo_field(&text, "flags").or_else(|| cpuinfo_field(&text, "Features"));
            let flags = flags.map(|flags| flags.split_whitespace().filter(about_counter).map(Into::into).collect());
            Fact::of(flags, "/proc/cpuinfo has no flags")
        })
    }

    /// Returns the CPUs that this process may use. A captured tree does not contain them.
    pub fn allowed_cpus(&self) -> Fact<Vec<usize>> {
        match self.is_live() {
            true => measure::allowed().map_err(|e| crate::human::reason(&e)).into(),
            false => Fact::unavailable("a captured tree does not contain it"),
        }
    }

    /// Returns the CPUs that are online.
    pub fn online_cpus(&self) -> Fact<Vec<usize>> {
        let path = "/sys/devices/system/cpu/online";
        self.read_line(path).and_then(|list| Fact::of(number_list(&list), format!("{path}: not a list of CPUs")))
    }
}

/// Returns the features that the flags of /proc/cpuinfo and the captured values of CPUID show. Linux sets `nonstop_tsc` and
/// `constant_tsc` for CPUID's invariant bit.
fn captured_features(architecture: Architecture, flags: &str, cpuid: CapturedCpuid) -> Features {
    let has = |name| flags.split_whitespace().any(|flag| flag == name);
    let mut features = Features::default();
    features.architecture = architecture;
    features.rdtscp = has("rdtscp");
    features.invariant = has("nonstop_tsc") && has("constant_tsc");
    features.tsc_adjust = has("tsc_adjust");
    features.hypervisor = has("hypervisor");
    features.hypervisor_signature = cpuid.hypervisor_signature;
    features.leaf_15_hz = cpuid.leaf_15_hz;
    features.leaf_16_hz = cpuid.leaf_16_hz;
    features.hypervisor_hz = cpuid.hypervisor_hz;
    features
}

/// Returns the first value of a field in /proc/cpuinfo.
pub fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// Parses the kernel's list format, like `0-3,8`.
pub fn number_list(list: &str) -> Option<Vec<usize>> {
    // No machine has more CPUs. A longer range is invalid.
    const MAX: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to > MAX || numbers.len() > MAX {
            return None;
        }
        numbers.extend(from..=to);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_translated_to_features() {
        let features = |flags| captured_features(Architecture::X86_64, flags, CapturedCpuid::default());
        let guest = features("fpu rdtscp constant_tsc nonstop_tsc hypervisor");
        assert!(guest.rdtscp && guest.invariant && guest.hypervisor && !guest.tsc_adjust);
        assert!(!features("constant_tsc").invariant);
    }

    #[test]
    fn lists_have_ranges_and_single_numbers() {
        assert_eq!(number_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(number_list("0"), Some(vec![0]));
        for invalid in ["", "x", "5-3", "0-99999999999", "1-", "0-0-0"] {
            assert_eq!(number_list(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_first_value_of_a_field_is_returned() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A B\nmodel name\t: C\n";
        assert_eq!(cpuinfo_field(cpuinfo, "model name"), Some("A B"));
        assert_eq!(cpuinfo_field(cpuinfo, "model"), None);
    }
}
