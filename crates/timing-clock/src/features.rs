//! What CPUID says of the time stamp counter.

/// The CPU's architecture, which decides what its counter promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    /// x86_64: the TSC, which has to claim bit by bit what it can
    #[cfg_attr(not(target_arch = "aarch64"), default)]
    X86_64,
    /// AArch64: the generic timer's counter, of constant rate by its architecture
    #[cfg_attr(target_arch = "aarch64", default)]
    Aarch64,
}

/// The CPU's own word on its counter. All false and `None` on CPUs without CPUID.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// Which counter it is about; by default that of this program's architecture
    pub architecture: Architecture,
    /// RDTSCP exists (leaf 0x80000001, EDX 27)
    pub rdtscp: bool,
    /// The counter runs at one rate in every power state (leaf 0x80000007, EDX 8)
    pub invariant: bool,
    /// Software can see whether firmware moved the counter (leaf 7, EBX 1)
    pub tsc_adjust: bool,
    /// This is a virtual machine (leaf 1, ECX 31)
    pub hypervisor: bool,
    /// The hypervisor's signature (leaf 0x40000000), such as `KVMKVMKVM`
    pub hypervisor_signature: Option<String>,
    /// Leaf 0x15: counter's rate from the crystal's, in Hz
    pub leaf_15_hz: Option<f64>,
    /// Leaf 0x16: the CPU's base frequency, in Hz, which the counter often runs at
    pub leaf_16_hz: Option<f64>,
    /// Leaf 0x40000010: the counter's rate as the hypervisor says, in Hz
    pub hypervisor_hz: Option<f64>,
}

impl Features {
    /// The counter keeps one rate in every power state.
    pub fn constant_rate(&self) -> bool {
        self.invariant || self.architecture == Architecture::Aarch64
    }

    /// Asks this CPU.
    #[cfg(target_arch = "x86_64")]
    pub fn of_this_cpu() -> Features {
        Features::from_cpuid(&raw_cpuid::CpuId::new())
    }

    /// This architecture has no CPUID.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn of_this_cpu() -> Features {
        Features::default()
    }

    /// Reads the leaves out of `cpuid`, which may be a captured dump.
    #[cfg(target_arch = "x86_64")]
    pub fn from_cpuid<R: raw_cpuid::CpuIdReader>(cpuid: &raw_cpuid::CpuId<R>) -> Features {
        let hypervisor = cpuid.get_feature_info().is_some_and(|f| f.has_hypervisor());
        let info = if hypervisor { cpuid.get_hypervisor_info() } else { None };
        Features {
            architecture: Architecture::X86_64,
            rdtscp: cpuid.get_extended_processor_and_feature_identifiers().is_some_and(|f| f.has_rdtscp()),
            invariant: cpuid.get_advanced_power_mgmt_info().is_some_and(|f| f.has_invariant_tsc()),
            tsc_adjust: cpuid.get_extended_feature_info().is_some_and(|f| f.has_tsc_adjust_msr()),
            hypervisor,
            hypervisor_signature: hypervisor.then(|| signature(cpuid)).flatten(),
            leaf_15_hz: cpuid
                .get_tsc_info()
                .filter(|t| t.numerator() > 0 && t.denominator() > 0 && t.nominal_frequency() > 0)
                .map(|t| t.nominal_frequency() as f64 * t.numerator() as f64 / t.denominator() as f64),
            leaf_16_hz: cpuid
                .get_processor_frequency_info()
                .map(|f| f.processor_base_frequency() as f64 * 1e6)
                .filter(|hz| *hz > 0.0),
            hypervisor_hz: info.and_then(|h| h.tsc_frequency()).map(|khz| khz as f64 * 1e3).filter(|hz| *hz > 0.0),
        }
    }
}

/// The twelve letters in EBX, ECX and EDX of leaf 0x40000000.
#[cfg(target_arch = "x86_64")]
fn signature<R: raw_cpuid::CpuIdReader>(cpuid: &raw_cpuid::CpuId<R>) -> Option<String> {
    use raw_cpuid::Hypervisor::*;
    let info = cpuid.get_hypervisor_info()?;
    Some(match info.identify() {
        KVM => "KVMKVMKVM".into(),
        VMware => "VMwareVMware".into(),
        HyperV => "Microsoft Hv".into(),
        Xen => "XenVMMXenVMM".into(),
        QEMU => "TCGTCGTCGTCG".into(),
        Bhyve => "bhyve bhyve".into(),
        QNX => "QNXQVMBSQG".into(),
        ACRN => "ACRNACRNACRN".into(),
        Unknown(ebx, ecx, edx) => {
            let bytes: Vec<u8> = [ebx, ecx, edx].iter().flat_map(|r| r.to_le_bytes()).collect();
            bytes
                .iter()
                .filter(|b| b.is_ascii_graphic() || **b == b' ')
                .map(|b| *b as char)
                .collect::<String>()
                .trim()
                .into()
        }
    })
}
