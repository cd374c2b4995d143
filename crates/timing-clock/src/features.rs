//! The time stamp counter's properties, from CPUID.

#[cfg(target_arch = "x86_64")]
use raw_cpuid::{CpuId, CpuIdResult, native_cpuid::cpuid_count};

/// The CPU's architecture. It decides which properties of the counter are guaranteed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Architecture {
    /// x86_64: the time stamp counter (TSC). CPUID reports each of its properties
    #[cfg_attr(not(target_arch = "aarch64"), default)]
    X86_64,
    /// AArch64: the generic timer's counter. The architecture guarantees a constant rate
    #[cfg_attr(target_arch = "aarch64", default)]
    Aarch64,
}

/// The properties of the counter that the CPU reports. All are false or `None` on CPUs without CPUID.
///
/// To describe another CPU, begin with `Features::default()` and set its fields.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Features {
    /// architecture of the counter. The default is this program's architecture
    pub architecture: Architecture,
    /// the CPU has the RDTSCP instruction (leaf 0x80000001, EDX bit 27)
    pub rdtscp: bool,
    /// the counter has the same rate in every power state (leaf 0x80000007, EDX bit 8)
    pub invariant: bool,
    /// the CPU has the TSC_ADJUST register, which shows whether firmware changed the counter (leaf 7, EBX bit 1)
    pub tsc_adjust: bool,
    /// this is a virtual machine (leaf 1, ECX bit 31)
    pub hypervisor: bool,
    /// signature of the hypervisor (leaf 0x40000000), such as `KVMKVMKVM`
    pub hypervisor_signature: Option<String>,
    /// the counter's rate in Hz, computed from the crystal's rate (leaf 0x15)
    pub leaf_15_hz: Option<f64>,
    /// the CPU's base frequency in Hz (leaf 0x16). The counter often has this rate
    pub leaf_16_hz: Option<f64>,
    /// the counter's rate in Hz, as the hypervisor reports it (leaf 0x40000010)
    pub hypervisor_hz: Option<f64>,
}

impl Features {
    /// Returns whether the counter has the same rate in every power state.
    pub fn constant_rate(&self) -> bool {
        self.invariant || self.architecture == Architecture::Aarch64
    }

    /// Returns the properties that this CPU reports.
    #[cfg(target_arch = "x86_64")]
    pub fn of_this_cpu() -> Features {
        Features::from_cpuid(cpuid_count)
    }

    /// Returns the default, because this architecture has no CPUID.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn of_this_cpu() -> Features {
        Features::default()
    }

    /// Reads the properties from CPUID. `leaf` gets the numbers of a leaf and a subleaf, and returns zeros for a leaf that
    /// does not exist.
    #[cfg(target_arch = "x86_64")]
    fn from_cpuid(leaf: impl Fn(u32, u32) -> CpuIdResult + Clone) -> Features {
        let cpuid = CpuId::with_cpuid_reader(leaf.clone());
        let hypervisor = cpuid.get_feature_info().is_some_and(|f| f.has_hypervisor());
        let info = if hypervisor { cpuid.get_hypervisor_info() } else { None };
        let leaf_15 = cpuid.get_tsc_info();
        let leaf_15 = leaf_15.map(|t| [t.nominal_frequency(), t.numerator(), t.denominator()].map(f64::from));
        let leaf_16 = cpuid.get_processor_frequency_info();
        // A part that is 0 is not known.
        let positive = |hz: f64| Some(hz).filter(|hz| *hz > 0.0 && hz.is_finite());
        Features {
            architecture: Architecture::X86_64,
            rdtscp: cpuid.get_extended_processor_and_feature_identifiers().is_some_and(|f| f.has_rdtscp()),
            invariant: cpuid.get_advanced_power_mgmt_info().is_some_and(|f| f.has_invariant_tsc()),
            tsc_adjust: cpuid.get_extended_feature_info().is_some_and(|f| f.has_tsc_adjust_msr()),
            hypervisor,
            hypervisor_signature: Some(signature(leaf(0x4000_0000, 0))).filter(|text| hypervisor && !text.is_empty()),
            leaf_15_hz: leaf_15
                .and_then(|[crystal, numerator, denominator]| positive(crystal * numerator / denominator)),
            leaf_16_hz: leaf_16.and_then(|f| positive(f64::from(f.processor_base_frequency()) * 1e6)),
            hypervisor_hz: info.and_then(|h| positive(f64::from(h.tsc_frequency()?) * 1e3)),
        }
    }
}

/// Returns the signature: up to twelve characters in EBX, ECX and EDX of leaf 0x40000000.
#[cfg(target_arch = "x86_64")]
fn signature(CpuIdResult { ebx, ecx, edx, .. }: CpuIdResult) -> String {
    let bytes = [ebx, ecx, edx].into_iter().flat_map(u32::to_le_bytes);
    let printable: String = bytes.filter(|b| b.is_ascii_graphic() || *b == b' ').map(char::from).collect();
    printable.trim().into()
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests {
    use super::*;
    type Leaf = (u32, [u32; 4]);

    const INTEL: [u32; 3] = [u32::from_le_bytes(*b"Genu"), u32::from_le_bytes(*b"ntel"), u32::from_le_bytes(*b"ineI")];
    const HYPERVISOR_BIT: u32 = 1 << 31;

    /// Returns the properties of an Intel CPU with these leaves: number, EAX, EBX, ECX, EDX. Other leaves are 0.
    fn features(leaves: &[Leaf]) -> Features {
        let leaves = leaves.to_vec();
        Features::from_cpuid(move |leaf, _subleaf| {
            let [eax, ebx, ecx, edx] = match leaf {
                0 => [0x16, INTEL[0], INTEL[1], INTEL[2]],
                0x8000_0000 => [0x8000_0008, INTEL[0], INTEL[1], INTEL[2]],
                _ => leaves.iter().find(|(number, _)| *number == leaf).map_or([0; 4], |(_, registers)| *registers),
            };
            CpuIdResult { eax, ebx, ecx, edx }
        })
    }

    /// Returns the leaves of a guest. The hypervisor has this signature, and reports the TSC's rate in kHz.
    fn guest(signature: &[u8; 12], khz: u32) -> [Leaf; 3] {
        let register = |at: usize| u32::from_le_bytes(signature[at..at + 4].try_into().unwrap());
        [
            (1, [0, 0, HYPERVISOR_BIT, 0]),
            (0x4000_0000, [0x4000_0010, register(0), register(4), register(8)]),
            (0x4000_0010, [khz, 0, 0, 0]),
        ]
    }

    #[test]
    fn each_bit_is_one_property() {
        let none = Features { architecture: Architecture::X86_64, ..Features::default() };
        assert_eq!(features(&[]), none);
        assert_eq!(features(&[(0x8000_0001, [0, 0, 0, 1 << 27])]), Features { rdtscp: true, ..none.clone() });
        assert_eq!(features(&[(0x8000_0007, [0, 0, 0, 1 << 8])]), Features { invariant: true, ..none.clone() });
        assert_eq!(features(&[(7, [0, 1 << 1, 0, 0])]), Features { tsc_adjust: true, ..none.clone() });
        assert!(features(&[(1, [0, 0, HYPERVISOR_BIT, 0])]).hypervisor);
    }

    #[test]
    fn leaf_15_needs_the_crystal_and_the_ratio() {
        // A crystal of 24 MHz and a ratio of 216 / 2: 2592 MHz.
        let hz = |denominator, numerator, crystal| features(&[(0x15, [denominator, numerator, crystal, 0])]).leaf_15_hz;
        assert_eq!(hz(2, 216, 24_000_000), Some(2.592e9));
        assert_eq!(hz(1, 1, 1), Some(1.0));
        for [denominator, numerator, crystal] in [[0, 216, 24_000_000], [2, 0, 24_000_000], [2, 216, 0]] {
            assert_eq!(hz(denominator, numerator, crystal), None, "{denominator} {numerator} {crystal}");
        }
    }

    #[test]
    fn leaf_16_is_in_mhz() {
        assert_eq!(features(&[(0x16, [2600, 3500, 100, 0])]).leaf_16_hz, Some(2.6e9));
        assert_eq!(features(&[(0x16, [0, 3500, 100, 0])]).leaf_16_hz, None);
    }

    #[test]
    fn the_hypervisor_reports_its_signature_and_the_rate_in_khz() {
        let kvm = features(&guest(b"KVMKVMKVM\0\0\0", 2_596_098));
        assert_eq!((kvm.hypervisor_signature.as_deref(), kvm.hypervisor_hz), (Some("KVMKVMKVM"), Some(2.596098e9)));
        assert_eq!(features(&guest(b"KVMKVMKVM\0\0\0", 0)).hypervisor_hz, None);
        for signature in [b"VMwareVMware", b"Microsoft Hv", b"XenVMMXenVMM", b"TCGTCGTCGTCG", b"bhyve bhyve "] {
            let expected = String::from_utf8_lossy(signature);
            assert_eq!(features(&guest(signature, 0)).hypervisor_signature.as_deref(), Some(expected.trim()));
        }
    }

    #[test]
    fn an_unknown_signature_keeps_its_printable_characters() {
        assert_eq!(features(&guest(b" My VM 2\x01\xff\0\0", 0)).hypervisor_signature.as_deref(), Some("My VM 2"));
    }

    #[test]
    fn an_empty_signature_is_none() {
        for signature in [b"\0\0\0\0\0\0\0\0\0\0\0\0", b" \x01          "] {
            assert_eq!(features(&guest(signature, 0)).hypervisor_signature, None);
        }
    }

    #[test]
    fn leaves_of_a_hypervisor_are_ignored_on_bare_metal() {
        let [_, signature, rate] = guest(b"KVMKVMKVM\0\0\0", 2_596_098);
        let bare_metal = features(&[signature, rate]);
        assert_eq!((bare_metal.hypervisor_signature, bare_metal.hypervisor_hz), (None, None));
    }

    #[cfg_attr(miri, ignore = "Miri does not execute assembly")]
    #[test]
    fn this_cpu_is_read_by_cpuid() {
        let [leaf_1, extended] = [1, 0x8000_0001].map(|leaf| cpuid_count(leaf, 0));
        let features = Features::of_this_cpu();
        assert_eq!(features.hypervisor, leaf_1.ecx & HYPERVISOR_BIT != 0);
        assert_eq!(features.rdtscp, extended.edx & 1 << 27 != 0);
    }

    #[test]
    fn aarch64_has_a_constant_rate_without_cpuid() {
        let features = |architecture, invariant| Features { architecture, invariant, ..Features::default() };
        assert!(features(Architecture::Aarch64, false).constant_rate());
        assert!(features(Architecture::X86_64, true).constant_rate());
        assert!(!features(Architecture::X86_64, false).constant_rate());
    }
}
