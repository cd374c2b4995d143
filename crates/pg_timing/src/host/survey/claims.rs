//! What others than the CPU say the counter's rate is.

use crate::host::facts::{Host, KernelLog};
use crate::host::kernel_log::{Rate, RateSource};
use crate::report::Report;
use timing_clock::{Claim, ClaimSource, Hertz, bogomips_claim, firmware_claim};

/// Further off, bogomips are those of another loop.
const DELAY_LOOP_PPM: f64 = 50_000.0;

/// The claims of firmware, kernel and procfs.
pub fn others(host: &Host, report: &Report, log: &KernelLog) -> Vec<Claim> {
    let mut claims = Vec::new();
    if host.is_live() {
        claims.extend(firmware_claim());
    }
    let sysctl = host.sysctls().and_then(|sysctls| sysctls.tsc_hz());
    claims.extend(sysctl.map(|hz| Claim { source: ClaimSource::Sysctl, rate: Hertz(hz), rounding: Hertz(0.5) }));
    // The log's tsc lines and the delay loop speak of the TSC, and of no other counter.
    if report.host.architecture.known().is_some_and(|name| name == "x86_64") {
        // A log that was named beside a live machine may be another's: its rates are no claim on this one.
        if let (Some(said), false) = (log.said.known(), log.named && host.is_live()) {
            claims.extend(of_kernel(said.rates()));
        }
        claims.extend(host.read("/proc/cpuinfo").known().and_then(|text| bogomips_claim(text)));
    }
    claims
}

/// The kernel's claims. Where the CPU's own rate is not the counter's it names both, the CPU's first.
fn of_kernel<'a>(rates: impl Iterator<Item = &'a Rate>) -> Vec<Claim> {
    let (mut processor, mut tsc, mut refined) = (None, None, None);
    for rate in rates {
        match rate.source {
            RateSource::Processor => processor = Some(rate.mhz),
            RateSource::Tsc => tsc = Some(rate.mhz),
            RateSource::Refined => refined = Some(rate.mhz),
            _ => {}
        }
    }
    // printed in MHz with three decimals
    let claim = |source, mhz: f64| Claim { source, rate: Hertz(mhz * 1e6), rounding: Hertz(500.0) };
    let detected = tsc.or(processor).map(|mhz| claim(ClaimSource::KernelDetected, mhz));
    detected.into_iter().chain(refined.map(|mhz| claim(ClaimSource::KernelRefined, mhz))).collect()
}

/// Leaves out what its own source would not claim any more.
pub fn drop_untenable(claims: &mut Vec<Claim>, measured: Option<Hertz>) {
    // What the kernel measured at boot it has given up for what it measured better.
    let refined = claims.iter().any(|claim| claim.source == ClaimSource::KernelRefined);
    claims.retain(|claim| match claim.source {
        ClaimSource::KernelDetected => !refined,
        // Where the kernel's delay loop is something else, its figure is no claim on the counter.
        ClaimSource::Bogomips => measured.is_none_or(|rate| claim.rate.ppm_from(rate).0.abs() < DELAY_LOOP_PPM),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel_log::parse;

    #[test]
    fn what_the_kernel_says() {
        let said = |log: &str| -> Vec<(ClaimSource, f64)> {
            of_kernel(parse(log).rates()).iter().map(|claim| (claim.source, claim.rate.0)).collect()
        };
        let detected = said("[    0.000053] tsc: Detected 2299.998 MHz processor");
        assert_eq!(detected, [(ClaimSource::KernelDetected, 2_299_998_000.0)]);
        let both = said("tsc: Detected 2500.000 MHz processor\ntsc: Detected 2400.000 MHz TSC\n");
        assert_eq!(both, [(ClaimSource::KernelDetected, 2_400_000_000.0)]);
        let refined = said("tsc: Refined TSC clocksource calibration: 2596.098 MHz");
        assert_eq!(refined, [(ClaimSource::KernelRefined, 2_596_098_000.0)]);
        for junk in ["tsc: Detected", "tsc: Detected x MHz processor", "tsc: Detected -3 MHz processor", ""] {
            assert_eq!(said(junk), [], "{junk}");
        }
    }
}
