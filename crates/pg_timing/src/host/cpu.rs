//! What the CPU says of its counter, and which CPUs there are.

use super::Host;
use super::names::field;
use crate::measure;
use crate::report::Fact;
use timing_clock::Features;

impl Host {
    /// Live: from CPUID. Captured: from the flags in /proc/cpuinfo, which name the same bits.
    pub fn features(&self) -> Fact<Features> {
        if self.is_live() {
            return Fact::Known(Features::of_this_cpu());
        }
        self.read("/proc/cpuinfo").map(|text| features_from_flags(field(&text, "flags").unwrap_or_default()))
    }

    /// The CPUs that this process may use. A captured tree does not tell.
    pub fn allowed_cpus(&self) -> Fact<Vec<usize>> {
        match self.is_live() {
            true => measure::allowed().map_err(|e| super::reason(&e)).into(),
            false => Fact::unavailable("a captured tree does not tell"),
        }
    }

    /// The CPUs that the kernel runs on.
    pub fn online_cpus(&self) -> Fact<Vec<usize>> {
        let path = "/sys/devices/system/cpu/online";
        match self.read_line(path) {
            Fact::Known(list) => match cpu_list(&list) {
                Some(cpus) => Fact::Known(cpus),
                None => Fact::unavailable(format!("{path}: not a list of CPUs")),
            },
            Fact::Unavailable { unavailable } => Fact::unavailable(unavailable),
        }
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

/// The kernel's list form, such as `0-3,8`.
fn cpu_list(list: &str) -> Option<Vec<usize>> {
    // No machine has more: a longer range is junk.
    const MOST: usize = 1 << 16;
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if to > MOST || cpus.len() > MOST {
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
        for junk in ["", "x", "0-99999999999", "1-", "0-0-0"] {
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
