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

/// The claims in the kernel's log. Where the CPU's own rate is not the counter's, the kernel prints
/// both (`MHz processor`, then `MHz TSC`): only the second is a claim then.
pub fn kernel_log_claims(log: &str) -> Vec<Claim> {
    let mut processor = None;
    let mut tsc = None;
    let mut refined = None;
    for line in log.lines() {
        let after = |words: &str| line.split_once(words).and_then(|(_, rest)| rest.split_once(" MHz"));
        if let Some((mhz, _)) = after("Refined TSC clocksource calibration: ") {
            refined = megahertz(mhz).or(refined);
        } else if let Some((mhz, what)) = after("tsc: Detected ") {
            let slot = if what.trim_start().starts_with("TSC") { &mut tsc } else { &mut processor };
            *slot = megahertz(mhz).or(*slot);
        }
    }
    // printed in MHz with three decimals
    let claim = |source, rate: Option<Hertz>| rate.map(|rate| Claim { source, rate, rounding: Hertz(500.0) });
    let claims = [claim(ClaimSource::KernelDetected, tsc.or(processor)), claim(ClaimSource::KernelRefined, refined)];
    claims.into_iter().flatten().collect()
}

/// `2299.998`: digits and a dot, as the kernel prints it; a rate that no counter has is junk.
fn megahertz(text: &str) -> Option<Hertz> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mhz: f64 = text.parse().ok().filter(|_| plain)?;
    (1.0..=100_000.0).contains(&mhz).then_some(Hertz(mhz * 1e6))
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
    fn kernel_log_lines() {
        let one = |line: &str| {
            let claims = kernel_log_claims(line);
            claims.first().map(|claim| (claims.len(), claim.source, claim.rate))
        };
        let detected = one("[    0.000053] tsc: Detected 2299.998 MHz processor");
        assert_eq!(detected, Some((1, ClaimSource::KernelDetected, Hertz(2_299_998_000.0))));
        let refined = one("tsc: Refined TSC clocksource calibration: 2596.098 MHz");
        assert_eq!(refined, Some((1, ClaimSource::KernelRefined, Hertz(2_596_098_000.0))));
        let both = one("tsc: Detected 2500.000 MHz processor\ntsc: Detected 2400.000 MHz TSC\n");
        assert_eq!(both, Some((1, ClaimSource::KernelDetected, Hertz(2_400_000_000.0))));
        for junk in [
            "tsc: Detected",
            "tsc: Detected x MHz",
            "tsc: Detected -3 MHz",
            "tsc: Detected 1e-300 MHz",
            "tsc: Detected inf MHz",
            "",
        ] {
            assert_eq!(one(junk), None, "{junk}");
        }
    }

    #[test]
    fn bogomips_are_cut_off() {
        let claim = bogomips_claim("processor\t: 0\nbogomips\t: 4599.99\n").unwrap();
        assert!((claim.rate.0 - 2_299_998_000.0).abs() <= claim.rounding.0, "{claim:?}");
        assert_eq!(bogomips_claim("BogoMIPS\t: x"), None);
    }
}
