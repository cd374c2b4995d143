//! The counter's rate according to the firmware, the kernel and procfs.

use crate::host::facts::{Host, KernelLog};
use crate::host::kernel_log::RateSource;
use crate::report::Report;
use timing_clock::{Claim, ClaimSource, Hertz, bogomips_claim, firmware_claim};

/// If bogomips differ by more, the kernel's delay loop does not use the counter.
const DELAY_LOOP_PPM: f64 = 50_000.0;

/// Returns the claims of firmware, kernel and procfs.
pub fn claims(host: &Host, report: &Report, log: &KernelLog) -> Vec<Claim> {
    let mut claims = Vec::new();
    if host.is_live() {
        claims.extend(firmware_claim());
    }
    let sysctl = host.sysctls().and_then(|sysctls| sysctls.tsc_hz());
    claims.extend(sysctl.map(|hz| Claim::new(ClaimSource::Sysctl, Hertz(hz), Hertz(0.5))));
    // The log's tsc lines and the delay loop describe the TSC, and no other counter.
    if report.host.architecture.known().is_some_and(|name| name == "x86_64") {
        // With --kernel-log on a live machine, the log may be from another machine.
        if let (Some(entries), false) = (log.entries.known(), log.named && host.is_live()) {
            claims.extend(kernel_claims(entries.rates()));
        }
        claims.extend(host.read("/proc/cpuinfo").known().and_then(|text| bogomips_claim(text)));
    }
    claims
}

/// Returns the kernel's claims. If the CPU's rate differs from the counter's, the kernel logs both, the CPU's first.
fn kernel_claims(rates: impl Iterator<Item = (RateSource, f64)>) -> Vec<Claim> {
    let (mut processor, mut tsc, mut refined, mut recalibrated) = (None, None, None, None);
    for (source, mhz) in rates {
        match source {
            RateSource::Processor => processor = Some(mhz),
            RateSource::Tsc => tsc = Some(mhz),
            RateSource::Refined => refined = Some(mhz),
            RateSource::Recalibrated => recalibrated = Some(mhz),
            _ => {}
        }
    }
    // The kernel prints MHz with three decimals.
    let claim = |source, mhz: f64| Claim::new(source, Hertz(mhz * 1e6), Hertz(500.0));
    let detected = tsc.or(processor).map(|mhz| claim(ClaimSource::KernelDetected, mhz));
    let refined = refined.map(|mhz| claim(ClaimSource::KernelRefined, mhz));
    let recalibrated = recalibrated.map(|mhz| claim(ClaimSource::KernelRecalibrated, mhz));
    [detected, refined, recalibrated].into_iter().flatten().collect()
}

/// Removes claims that a better one replaces, or that do not describe the counter.
pub fn remove_obsolete(claims: &mut Vec<Claim>, measured: Option<Hertz>) {
    // The refined rate replaces the kernel's first calibration.
    let refined = claims.iter().any(|claim| claim.source == ClaimSource::KernelRefined);
    claims.retain(|claim| match claim.source {
        ClaimSource::KernelDetected => !refined,
        // If the kernel's delay loop does not use the counter, bogomips do not describe it.
        ClaimSource::Bogomips => measured.is_none_or(|rate| claim.rate.ppm_from(rate).0.abs() < DELAY_LOOP_PPM),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel_log::parse;

    #[test]
    fn rates_are_read_from_the_kernel_log() {
        let claims_in = |log: &str| -> Vec<(ClaimSource, f64)> {
            kernel_claims(parse(log).rates()).iter().map(|claim| (claim.source, claim.rate.0)).collect()
        };
        let detected = claims_in("[    0.000053] tsc: Detected 2299.998 MHz processor");
        assert_eq!(detected, [(ClaimSource::KernelDetected, 2_299_998_000.0)]);
        let both = claims_in("tsc: Detected 2500.000 MHz processor\ntsc: Detected 2400.000 MHz TSC\n");
        assert_eq!(both, [(ClaimSource::KernelDetected, 2_400_000_000.0)]);
        let refined = claims_in("tsc: Refined TSC clocksource calibration: 2596.098 MHz");
        assert_eq!(refined, [(ClaimSource::KernelRefined, 2_596_098_000.0)]);
        let recalibrated = claims_in("tsc: TSC freq recalibrated by [HPET]:\t 2400.000 MHz");
        assert_eq!(recalibrated, [(ClaimSource::KernelRecalibrated, 2_400_000_000.0)]);
        for junk in ["tsc: Detected", "tsc: Detected x MHz processor", "tsc: Detected -3 MHz processor", ""] {
            assert_eq!(claims_in(junk), [], "{junk}");
        }
    }
}
