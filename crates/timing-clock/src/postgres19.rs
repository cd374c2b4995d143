//! What PostgreSQL 19's `timing_clock_source` does on such a host.
//!
//! Read in its `instr_time.c`: the counter needs RDTSCP and invariance; `auto` then takes it if the
//! CPU has TSC_ADJUST, and else only if the kernel's clock source is exactly `tsc`. Its rate comes
//! from CPUID where that can be believed, else from a calibration of at most 50 ms.

use crate::{Architecture, Claim, ClaimSource, Features, KernelVerdict, cpu_claims};

/// PostgreSQL 19's decision, and how it comes to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Postgres19 {
    /// `timing_clock_source = tsc` would be accepted (as far as its calibration converges)
    pub usable: bool,
    /// `timing_clock_source = auto`, the default, would take the TSC
    pub auto: bool,
    /// The rate it would take over; `None`: it calibrates
    pub frequency: Option<Claim>,
    /// Its line `TSC frequency source: ...`
    pub source: String,
}

/// Follows PostgreSQL 19's rules. `kernel` is `None` without sysfs, which it takes for "not tsc".
pub fn postgres19(features: &Features, kernel: Option<&KernelVerdict>) -> Postgres19 {
    let mut source = String::from("x86");
    if features.architecture != Architecture::X86_64 {
        return Postgres19 { usable: false, auto: false, frequency: None, source: "not x86".into() };
    }
    for (fact, word) in [(features.rdtscp, ", no rdtscp"), (features.invariant, ", not invariant")] {
        if !fact {
            source.push_str(word);
            return Postgres19 { usable: false, auto: false, frequency: None, source };
        }
    }
    let frequency = frequency(features);
    if features.hypervisor {
        source.push_str(", hypervisor");
    }
    source.push_str(match frequency.as_ref().map(|claim| claim.source) {
        Some(ClaimSource::HypervisorLeaf) => ", cpuid 0x40000010",
        Some(ClaimSource::Cpuid15) => ", cpuid 0x15",
        Some(_) => ", cpuid 0x16",
        None => ", calibration",
    });
    let kernel_says_tsc = kernel.is_some_and(|kernel| kernel.current == "tsc");
    Postgres19 { usable: true, auto: features.tsc_adjust || kernel_says_tsc, frequency, source }
}

/// In a virtual machine only the leaf that KVM and VMware fill is believed: 0x15 and 0x16 have been
/// seen wildly wrong there.
fn frequency(features: &Features) -> Option<Claim> {
    let believed: &[ClaimSource] = match (features.hypervisor, features.hypervisor_signature.as_deref()) {
        (true, Some("KVMKVMKVM" | "VMwareVMware")) => &[ClaimSource::HypervisorLeaf],
        (true, _) => &[],
        (false, _) => &[ClaimSource::Cpuid15, ClaimSource::Cpuid16],
    };
    let claims = cpu_claims(features);
    believed.iter().find_map(|source| claims.iter().find(|claim| claim.source == *source).cloned())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn kernel(current: &str) -> KernelVerdict {
        KernelVerdict::parse(current, "tsc hpet")
    }

    fn good() -> Features {
        Features { rdtscp: true, invariant: true, ..Features::default() }
    }

    #[test]
    fn auto_heeds_the_kernel_only_without_tsc_adjust() {
        assert!(postgres19(&good(), Some(&kernel("tsc"))).auto);
        assert!(!postgres19(&good(), Some(&kernel("kvm-clock"))).auto);
        assert!(!postgres19(&good(), None).auto);
        let adjust = Features { tsc_adjust: true, ..good() };
        assert!(postgres19(&adjust, Some(&kernel("hpet"))).auto, "a demoted TSC is kept");
    }

    #[test]
    fn a_guest_believes_only_the_hypervisor() {
        let guest = Features {
            hypervisor: true,
            hypervisor_signature: Some("KVMKVMKVM".into()),
            leaf_15_hz: Some(7e3),
            ..good()
        };
        let said = postgres19(&guest, None);
        assert_eq!((said.frequency, said.source.as_str()), (None, "x86, hypervisor, calibration"));
        let bare = Features { leaf_16_hz: Some(2.4e9), ..good() };
        assert_eq!(postgres19(&bare, None).source, "x86, cpuid 0x16");
    }

    #[test]
    fn unusable_without_rdtscp() {
        let old = Features { rdtscp: false, ..good() };
        let said = postgres19(&old, Some(&kernel("tsc")));
        assert!(!said.usable && !said.auto);
        assert_eq!(said.source, "x86, no rdtscp");
    }
}
