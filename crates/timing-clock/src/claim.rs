//! Rates of the counter that the CPU, the hypervisor, the firmware or the kernel reports.

use crate::{Features, Hertz};

/// A rate that another source reports. This crate did not measure it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// origin of the rate
    pub source: ClaimSource,
    /// claimed rate
    pub rate: Hertz,
    /// maximum rounding error: half a unit of the last digit that the source prints
    pub rounding: Hertz,
}

/// The origin of a claimed rate. Each origin is wrong on some hosts.
///
/// This crate reads CPUID, CNTFRQ_EL0 and bogomips. The other origins are for callers that read the kernel's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimSource {
    /// CPUID leaf 0x15: the crystal's rate and the ratio of the counter to it. The error is 4% on some Sapphire Rapids.
    /// The values are meaningless under some hypervisors
    Cpuid15,
    /// CPUID leaf 0x16: the CPU's base frequency in MHz. It is rounded, and the counter may have another rate
    Cpuid16,
    /// CPUID leaf 0x40000010, from the hypervisor. It is out of date after some migrations
    HypervisorLeaf,
    /// The kernel log at boot: `tsc: Detected N MHz`
    KernelDetected,
    /// The kernel log about a second after boot: `Refined TSC clocksource calibration`
    KernelRefined,
    /// The kernel log after a start with the boot parameter `tsc=recalibrate`: `TSC freq recalibrated by [HPET]`. The kernel
    /// prints this rate, and continues with the old one
    KernelRecalibrated,
    /// The bogomips in /proc/cpuinfo: twice the rate in MHz, if the kernel's delay loop reads the counter
    Bogomips,
    /// AArch64's register CNTFRQ_EL0, which the firmware writes
    Cntfrq,
}

impl core::fmt::Display for ClaimSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ClaimSource::Cpuid15 => "CPUID 0x15",
            ClaimSource::Cpuid16 => "CPUID 0x16",
            ClaimSource::HypervisorLeaf => "hypervisor (CPUID 0x40000010)",
            ClaimSource::KernelDetected => "kernel log at boot",
            ClaimSource::KernelRefined => "kernel log (refined)",
            ClaimSource::KernelRecalibrated => "kernel log (tsc=recalibrate)",
            ClaimSource::Bogomips => "/proc/cpuinfo bogomips",
            ClaimSource::Cntfrq => "CNTFRQ_EL0",
        })
    }
}

/// The slowest crystal of CPUID leaf 0x15. The leaf has its rate in whole hertz, and the ratio multiplies the rounding.
const SLOWEST_CRYSTAL_HZ: f64 = 19.2e6;

/// Returns the claims of the CPU and the hypervisor.
pub fn cpu_claims(features: &Features) -> Vec<Claim> {
    let claim =
        |source, hz: Option<f64>, rounding| hz.map(|hz| Claim { source, rate: Hertz(hz), rounding: Hertz(rounding) });
    let leaf_15_rounding = features.leaf_15_hz.unwrap_or_default() * 0.5 / SLOWEST_CRYSTAL_HZ;
    let claims = [
        claim(ClaimSource::HypervisorLeaf, features.hypervisor_hz, 500.0),
        claim(ClaimSource::Cpuid15, features.leaf_15_hz, leaf_15_rounding),
        claim(ClaimSource::Cpuid16, features.leaf_16_hz, 500_000.0),
    ];
    claims.into_iter().flatten().collect()
}

/// Returns the claim of this machine's firmware. `None` if it has none, or if this is not AArch64.
pub fn firmware_claim() -> Option<Claim> {
    #[cfg(target_arch = "aarch64")]
    let hz = crate::counter::aarch64::cntfrq();
    #[cfg(not(target_arch = "aarch64"))]
    let hz = 0_u64;
    (hz > 0).then_some(Claim { source: ClaimSource::Cntfrq, rate: Hertz(hz as f64), rounding: Hertz(0.5) })
}

/// Returns the claim in the text of /proc/cpuinfo. Bogomips are twice the counter's rate in MHz, truncated to two
/// decimals. `None` if the text has no plausible bogomips.
///
/// The rounding is that of kernels with 100, 250 or 1000 ticks per second (`CONFIG_HZ`). With 300, the kernel's division
/// makes the value up to 0.1% wrong.
pub fn bogomips_claim(cpuinfo: &str) -> Option<Claim> {
    let line = cpuinfo.lines().find(|line| line.to_ascii_lowercase().starts_with("bogomips"))?;
    let bogomips: f64 = line.split_once(':')?.1.trim().parse().ok()?;
    // The value is truncated, not rounded, so the middle of its range is 0.005 higher.
    let (rate, rounding) = (Hertz((bogomips + 0.005) * 1e6 / 2.0), Hertz(2_500.0));
    (1.0..=200_000.0).contains(&bogomips).then_some(Claim { source: ClaimSource::Bogomips, rate, rounding })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bogomips_are_truncated_to_two_decimals() {
        let claim = bogomips_claim("processor\t: 0\nbogomips\t: 4599.99\n").unwrap();
        let expected = Claim { source: ClaimSource::Bogomips, rate: Hertz(2_299_997_500.0), rounding: Hertz(2_500.0) };
        assert_eq!((claim.source, claim.rounding), (expected.source, expected.rounding));
        assert!((claim.rate.0 - expected.rate.0).abs() < 1.0, "{claim:?}");
    }

    #[test]
    fn impossible_bogomips_are_no_claim() {
        for value in ["x", "0.50", "200001", "NaN"] {
            assert_eq!(bogomips_claim(&format!("BogoMIPS\t: {value}")), None, "{value}");
        }
        assert_eq!(bogomips_claim("processor\t: 0\n"), None);
    }

    #[test]
    fn each_leaf_is_a_claim_with_its_rounding() {
        let features = Features {
            hypervisor_hz: Some(2.5e9),
            leaf_15_hz: Some(2.4e9),
            leaf_16_hz: Some(2.3e9),
            ..Features::default()
        };
        let claim = |source, hz, rounding| Claim { source, rate: Hertz(hz), rounding: Hertz(rounding) };
        let expected = [
            claim(ClaimSource::HypervisorLeaf, 2.5e9, 500.0),
            // Half a hertz of a crystal of 19.2 MHz, times 125.
            claim(ClaimSource::Cpuid15, 2.4e9, 62.5),
            claim(ClaimSource::Cpuid16, 2.3e9, 500_000.0),
        ];
        assert_eq!(cpu_claims(&features), expected);
        assert_eq!(cpu_claims(&Features::default()), []);
    }

    #[test]
    fn each_source_has_its_own_name() {
        use ClaimSource::*;
        let sources =
            [Cpuid15, Cpuid16, HypervisorLeaf, KernelDetected, KernelRefined, KernelRecalibrated, Bogomips, Cntfrq];
        let names: std::collections::BTreeSet<_> = sources.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), sources.len());
        assert_eq!(KernelDetected.to_string(), "kernel log at boot");
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[test]
    fn only_aarch64_has_a_firmware_claim() {
        assert_eq!(firmware_claim(), None);
    }
}
