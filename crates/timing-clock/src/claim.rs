//! What others say the counter's rate is.

use crate::{Features, Hertz};

/// A rate that was not measured here but claimed by somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// who says so
    pub source: ClaimSource,
    /// what they say
    pub rate: Hertz,
    /// half of the last digit that they give, in Hz
    pub rounding: Hertz,
}

/// Who claims a rate. Each has been wrong somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimSource {
    /// CPUID leaf 0x15: crystal and ratio. 4% off on some Sapphire Rapids; nonsense under some hypervisors
    Cpuid15,
    /// CPUID leaf 0x16: base frequency in MHz. Rounded, and not always the counter's
    Cpuid16,
    /// CPUID leaf 0x40000010: the hypervisor's word. Stale after some migrations
    HypervisorLeaf,
    /// The kernel log at boot: `tsc: Detected N MHz`
    KernelDetected,
    /// The kernel log a second later: `Refined TSC clocksource calibration`
    KernelRefined,
    /// /proc/cpuinfo's bogomips: twice the rate in MHz, where the kernel's delay loop is the counter
    Bogomips,
    /// FreeBSD's `machdep.tsc_freq`: its own calibration, or what the administrator set
    Sysctl,
    /// CNTFRQ_EL0: what the firmware wrote there
    Cntfrq,
}

impl core::fmt::Display for ClaimSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ClaimSource::Cpuid15 => "CPUID 0x15",
            ClaimSource::Cpuid16 => "CPUID 0x16",
            ClaimSource::HypervisorLeaf => "hypervisor (CPUID 0x40000010)",
            ClaimSource::KernelDetected => "kernel log, at boot",
            ClaimSource::KernelRefined => "kernel log, refined",
            ClaimSource::Bogomips => "/proc/cpuinfo, bogomips",
            ClaimSource::Sysctl => "sysctl machdep.tsc_freq",
            ClaimSource::Cntfrq => "CNTFRQ_EL0",
        })
    }
}

/// The claims that the CPU and its hypervisor make.
pub fn cpu_claims(features: &Features) -> Vec<Claim> {
    let claim =
        |source, hz: Option<f64>, rounding| hz.map(|hz| Claim { source, rate: Hertz(hz), rounding: Hertz(rounding) });
    [
        claim(ClaimSource::HypervisorLeaf, features.hypervisor_hz, 500.0),
        claim(ClaimSource::Cpuid15, features.leaf_15_hz, 0.5),
        claim(ClaimSource::Cpuid16, features.leaf_16_hz, 500_000.0),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The claim that this machine's firmware makes, on AArch64. 0 is none.
pub fn firmware_claim() -> Option<Claim> {
    cntfrq().map(|hz| Claim { source: ClaimSource::Cntfrq, rate: Hertz(hz), rounding: Hertz(0.5) })
}

#[cfg(target_arch = "aarch64")]
fn cntfrq() -> Option<f64> {
    match crate::counter::aarch64::cntfrq() {
        0 => None,
        hz => Some(hz as f64),
    }
}

#[cfg(not(target_arch = "aarch64"))]
fn cntfrq() -> Option<f64> {
    None
}

/// The claim in /proc/cpuinfo: twice the counter's rate in MHz, cut off after two decimals.
pub fn bogomips_claim(cpuinfo: &str) -> Option<Claim> {
    let line = cpuinfo.lines().find(|line| line.to_ascii_lowercase().starts_with("bogomips"))?;
    let bogomips: f64 = line.split_once(':')?.1.trim().parse().ok()?;
    // The digits were cut, not rounded: the middle of what they can mean is 0.005 above.
    (1.0..=200_000.0).contains(&bogomips).then_some(Claim {
        source: ClaimSource::Bogomips,
        rate: Hertz((bogomips + 0.005) * 1e6 / 2.0),
        rounding: Hertz(2_500.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bogomips_are_cut_off() {
        let claim = bogomips_claim("processor\t: 0\nbogomips\t: 4599.99\n").unwrap();
        assert!((claim.rate.0 - 2_299_998_000.0).abs() <= claim.rounding.0, "{claim:?}");
        assert_eq!(bogomips_claim("BogoMIPS\t: x"), None);
    }
}
