//! Decides whether a program can use the counter, and predicts what PostgreSQL 19's `timing_clock_source` does on a host.

use crate::{Architecture, Claim, ClaimSource, ClockSources, Features, RateError, Refused, cpu_claims};

/// A reason not to use the counter. Its text contains the cause.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Distrust {
    /// This thread may not read the counter, or the CPU has no instruction for it.
    #[error("{0}")]
    Refused(Refused),
    /// CPUID does not report that the counter has the same rate in every power state.
    #[error("CPUID does not report a constant rate (no invariant TSC)")]
    NotInvariant,
    /// The kernel marked the counter unstable, or never accepted it.
    #[error("the kernel does not offer the counter as a clock source and uses {current}")]
    Demoted {
        /// name of the clock source that the kernel uses
        current: String,
    },
    /// The counter's rate could not be measured.
    #[error("the counter's rate is unknown: {0}")]
    RateUnknown(RateError),
}

/// Returns every reason not to use the counter that is known without reading it. If there is none, the counter is usable,
/// provided that its [rate can be measured](crate::measure_rate).
///
/// `kernel` is `None` if there is no sysfs. Then the kernel's opinion is not required.
pub fn distrust(features: &Features, permission: Result<(), Refused>, kernel: Option<&ClockSources>) -> Vec<Distrust> {
    let refused = permission.err().map(Distrust::Refused);
    let varies = (!features.constant_rate()).then_some(Distrust::NotInvariant);
    [refused, varies, kernel.and_then(demoted)].into_iter().flatten().collect()
}

/// Returns a reason if the kernel does not accept the counter as a clock source.
pub(crate) fn demoted(kernel: &ClockSources) -> Option<Distrust> {
    (!kernel.accepts_counter()).then(|| Distrust::Demoted { current: kernel.current.clone() })
}

/// PostgreSQL 19's decision and its reason.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Postgres19 {
    /// `timing_clock_source = tsc` is accepted, provided that the calibration converges
    pub usable: bool,
    /// `timing_clock_source = auto`, the default, uses the TSC
    pub auto: bool,
    /// rate that PostgreSQL takes from CPUID. `None` if it calibrates
    pub frequency: Option<Claim>,
    /// text that PostgreSQL prints after `TSC frequency source:`
    pub source: String,
}

/// Returns PostgreSQL 19's decision. `kernel` is `None` without sysfs. PostgreSQL treats this like another clock
/// source than `tsc`.
///
/// The source is PostgreSQL's `instr_time.c`. PostgreSQL uses the counter only if the CPU has RDTSCP and an invariant
/// TSC. `auto` also requires that the CPU has TSC_ADJUST, or that the kernel's clock source is exactly `tsc`.
/// PostgreSQL takes the rate from CPUID if that is reliable. Otherwise it calibrates the counter for at most 50 ms. It does
/// not check whether the process may read the counter ([`permitted`](crate::counter::permitted)).
pub fn postgres19(features: &Features, kernel: Option<&ClockSources>) -> Postgres19 {
    let why_not = match features {
        Features { architecture: Architecture::Aarch64, .. } => Some("not x86"),
        Features { rdtscp: false, .. } => Some("x86, no rdtscp"),
        Features { invariant: false, .. } => Some("x86, not invariant"),
        _ => None,
    };
    if let Some(source) = why_not {
        return Postgres19 { usable: false, auto: false, frequency: None, source: source.into() };
    }
    let frequency = frequency(features);
    let hypervisor = if features.hypervisor { ", hypervisor" } else { "" };
    let rate = match frequency.as_ref().map(|claim| claim.source) {
        Some(ClaimSource::HypervisorLeaf) => "cpuid 0x40000010",
        Some(ClaimSource::Cpuid15) => "cpuid 0x15",
        Some(_) => "cpuid 0x16",
        None => "calibration",
    };
    let source = format!("x86{hypervisor}, {rate}");
    let kernel_uses_tsc = kernel.is_some_and(|kernel| kernel.current == "tsc");
    Postgres19 { usable: true, auto: features.tsc_adjust || kernel_uses_tsc, frequency, source }
}

/// Returns the rate that PostgreSQL takes from CPUID.
///
/// In a virtual machine it uses only leaf 0x40000010 of KVM and VMware, because leaves 0x15 and 0x16 can be very wrong
/// there.
fn frequency(features: &Features) -> Option<Claim> {
    let trusted: &[ClaimSource] = match (features.hypervisor, features.hypervisor_signature.as_deref()) {
        (true, Some("KVMKVMKVM" | "VMwareVMware")) => &[ClaimSource::HypervisorLeaf],
        (true, _) => &[],
        (false, _) => &[ClaimSource::Cpuid15, ClaimSource::Cpuid16],
    };
    let claims = cpu_claims(features);
    trusted.iter().find_map(|source| claims.iter().find(|claim| claim.source == *source).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Architecture;

    fn reasons(current: &str, available: &str, features: Features) -> Vec<Distrust> {
        distrust(&features, Ok(()), Some(&ClockSources::parse(current, available)))
    }

    fn good() -> Features {
        Features { architecture: Architecture::X86_64, rdtscp: true, invariant: true, ..Features::default() }
    }

    #[test]
    fn a_counter_that_the_kernel_uses_or_offers_is_trusted() {
        for (current, available) in [("tsc", "tsc hpet"), ("kvm-clock", "kvm-clock tsc"), ("hpet", "tsc hpet")] {
            assert_eq!(reasons(current, available, good()), [], "{current}; available: {available}");
        }
    }

    #[test]
    fn a_counter_that_the_kernel_does_not_offer_is_not_trusted() {
        for (current, available) in [("hpet", "hpet acpi_pm"), ("kvm-clock", "kvm-clock hpet"), ("xen", "xen")] {
            assert_eq!(reasons(current, available, good()), [Distrust::Demoted { current: current.into() }]);
        }
    }

    #[test]
    fn each_reason_has_its_text() {
        assert_eq!(Distrust::Refused(Refused::NoInstruction("RDTSCP")).to_string(), "this CPU has no RDTSCP");
        assert_eq!(Distrust::NotInvariant.to_string(), "CPUID does not report a constant rate (no invariant TSC)");
        assert_eq!(
            Distrust::Demoted { current: "hpet".into() }.to_string(),
            "the kernel does not offer the counter as a clock source and uses hpet"
        );
        let unknown = Distrust::RateUnknown(RateError::WentBack);
        assert_eq!(unknown.to_string(), "the counter's rate is unknown: the counter went back");
    }

    #[test]
    fn each_reason_is_reported() {
        let not_invariant = Features { invariant: false, ..good() };
        assert_eq!(reasons("tsc", "tsc", not_invariant), [Distrust::NotInvariant]);
        let arm = Features { architecture: Architecture::Aarch64, ..Features::default() };
        assert_eq!(reasons("arch_sys_counter", "arch_sys_counter", arm), []);
        assert_eq!(distrust(&good(), Ok(()), None), []);
        assert_eq!(distrust(&good(), Err(Refused::Denied), None), [Distrust::Refused(Refused::Denied)]);
    }
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod postgres19_tests {
    use super::*;

    fn kernel(current: &str) -> ClockSources {
        ClockSources::parse(current, "tsc hpet")
    }

    fn good() -> Features {
        Features { rdtscp: true, invariant: true, ..Features::default() }
    }

    #[test]
    fn auto_depends_on_the_kernel_only_without_tsc_adjust() {
        assert!(postgres19(&good(), Some(&kernel("tsc"))).auto);
        assert!(!postgres19(&good(), Some(&kernel("kvm-clock"))).auto);
        assert!(!postgres19(&good(), None).auto);
        let adjust = Features { tsc_adjust: true, ..good() };
        assert!(postgres19(&adjust, Some(&kernel("hpet"))).auto, "auto uses a demoted TSC");
    }

    #[test]
    fn a_guest_uses_only_the_hypervisors_rate() {
        let guest = Features {
            hypervisor: true,
            hypervisor_signature: Some("KVMKVMKVM".into()),
            leaf_15_hz: Some(7e3),
            ..good()
        };
        let decision = postgres19(&guest, None);
        assert_eq!((decision.frequency, decision.source.as_str()), (None, "x86, hypervisor, calibration"));
        let bare = Features { leaf_16_hz: Some(2.4e9), ..good() };
        assert_eq!(postgres19(&bare, None).source, "x86, cpuid 0x16");
    }

    #[test]
    fn each_source_of_the_rate_is_named() {
        let leaves = Features { leaf_15_hz: Some(1e9), leaf_16_hz: Some(2e9), hypervisor_hz: Some(3e9), ..good() };
        let guest = |signature: Option<&str>| Features {
            hypervisor: true,
            hypervisor_signature: signature.map(Into::into),
            ..leaves.clone()
        };
        let cases = [
            (leaves.clone(), "x86, cpuid 0x15", Some(1e9)),
            (Features { leaf_15_hz: None, ..leaves.clone() }, "x86, cpuid 0x16", Some(2e9)),
            (good(), "x86, calibration", None),
            (guest(Some("KVMKVMKVM")), "x86, hypervisor, cpuid 0x40000010", Some(3e9)),
            (guest(Some("VMwareVMware")), "x86, hypervisor, cpuid 0x40000010", Some(3e9)),
            (guest(Some("Microsoft Hv")), "x86, hypervisor, calibration", None),
            (guest(None), "x86, hypervisor, calibration", None),
        ];
        for (features, source, hz) in cases {
            let decision = postgres19(&features, None);
            assert_eq!((decision.source.as_str(), decision.frequency.map(|claim| claim.rate.0)), (source, hz));
            assert!(decision.usable, "{source}");
        }
    }

    #[test]
    fn other_counters_and_a_variable_rate_are_unusable() {
        let arm = Features { architecture: Architecture::Aarch64, ..good() };
        let variable = Features { invariant: false, ..good() };
        for (features, source) in [(arm, "not x86"), (variable, "x86, not invariant")] {
            let decision = postgres19(&features, Some(&kernel("tsc")));
            assert_eq!((decision.usable, decision.auto, decision.source.as_str()), (false, false, source));
        }
    }

    #[test]
    fn a_cpu_without_rdtscp_is_unusable() {
        let old = Features { rdtscp: false, ..good() };
        let decision = postgres19(&old, Some(&kernel("tsc")));
        assert!(!decision.usable && !decision.auto);
        assert_eq!(decision.source, "x86, no rdtscp");
    }
}
