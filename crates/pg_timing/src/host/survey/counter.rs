//! The counter's rate, the claims of other sources, and whether the counter can be used.

use crate::host::facts::{Host, KernelLog};
use crate::host::kernel_log::RateSource;
use crate::report::{ClaimReport, Fact, Report, TscReport};
use timing_clock::{Claim, ClaimSource, Hertz, REFERENCE_NAME, Rate, Refused, bogomips_claim};
use timing_clock::{cpu_claims, distrust, firmware_claim, postgres19};

/// Returns the report about the counter.
pub fn judge(
    host: &Host,
    report: &Report,
    permission: Result<(), Refused>,
    rate: &Result<Rate, String>,
    log: &KernelLog,
) -> TscReport {
    let kernel = report.clocksource.names();
    let mut tsc = TscReport { permitted: Some(permission.is_ok()), ..TscReport::unavailable("") };
    if let Some("aarch64") = report.host.architecture.known().map(String::as_str) {
        tsc.counter = "cntvct".into();
    }
    match rate {
        Ok(rate) => {
            let shown = to_uncertainty(rate.rate.khz(), rate.uncertainty.0);
            let rounded = (shown - rate.rate.khz()).abs() / shown * 1e6;
            tsc.frequency_khz = Fact::Known(shown);
            tsc.uncertainty_ppm = Some(two_digits(rate.uncertainty.0 + rounded));
            tsc.source = Some("measured".into());
            tsc.reference = Some(REFERENCE_NAME.into());
        }
        Err(why) => tsc.frequency_khz = Fact::unavailable(why),
    }
    tsc.independent = kernel.as_ref().map(|kernel| !kernel.uses_counter());
    tsc.accepted_by_kernel = kernel.as_ref().map(|kernel| kernel.accepts_counter());
    let mut claims = Vec::new();
    if let Fact::Known(features) = host.features() {
        let reasons = distrust(&features, permission, kernel.as_ref());
        tsc.usable = Some(reasons.is_empty() && rate.is_ok());
        tsc.distrust = reasons.iter().map(ToString::to_string).collect();
        // In a captured tree an unmeasured rate is not a reason for distrust.
        if let (Err(why), true, true) = (rate, host.is_live(), reasons.is_empty()) {
            tsc.distrust.push(format!("the counter's rate is unknown: {why}"));
        }
        tsc.invariant = Some(features.constant_rate());
        let postgres = postgres19(&features, kernel.as_ref());
        tsc.used_by_default = Some(postgres.auto && permission.is_ok());
        tsc.postgres19_source = Some(postgres.source);
        tsc.postgres19_frequency_khz = postgres.frequency.map(|claim| claim.rate.khz());
        claims = cpu_claims(&features);
    }
    // Without the kernel's list of clock sources, only its log shows that it rejected the counter. A log that the user
    // names may be from another machine.
    if let (None, false, Some(reason)) = (&kernel, log.named && host.is_live(), rejected(report)) {
        tsc.usable = Some(false);
        tsc.distrust.push(reason);
    }
    claims.extend(other_claims(host, report, log));
    let measured = rate.as_ref().ok().map(|rate| rate.rate);
    remove_obsolete(&mut claims, measured);
    tsc.claims = claims.iter().map(|claim| compare(claim, measured)).collect();
    tsc
}

/// Returns why the counter is not safe according to the kernel log, if the kernel rejected it.
fn rejected(report: &Report) -> Option<String> {
    let demotion = report.kernel.known()?.demotion.as_ref()?;
    let when = demotion.when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    Some(format!("the kernel marked it unstable{when}, because {}", demotion.because))
}

/// Compares a claim with the measured rate.
fn compare(claim: &Claim, measured: Option<Hertz>) -> ClaimReport {
    ClaimReport {
        source: claim.source.to_string(),
        frequency_khz: claim.rate.khz(),
        rounding_ppm: two_digits(claim.rounding.0 / claim.rate.0 * 1e6),
        disagreement_ppm: measured.map(|measured| (claim.rate.ppm_from(measured).0 * 100.0).round() / 100.0),
    }
}

/// Rounds a rate to its uncertainty: 2299998.0263 +- 0.01 ppm (0.023 kHz) becomes 2299998.03.
fn to_uncertainty(khz: f64, ppm: f64) -> f64 {
    let error = khz * ppm / 1e6;
    if error.is_nan() || error <= 0.0 {
        return khz;
    }
    let decimals = (-error.log10().floor()).clamp(-9.0, 6.0) as i32;
    let unit = 10f64.powi(-decimals);
    // Division by a power of ten keeps the printed number short. Multiplication does not.
    let rounded = (khz / unit).round();
    if decimals >= 0 { rounded / 10f64.powi(decimals) } else { rounded * unit }
}

/// Rounds an uncertainty up to two digits, so that it remains a bound.
fn two_digits(ppm: f64) -> f64 {
    if ppm.is_nan() || ppm <= 0.0 {
        return ppm;
    }
    let decimals = 1 - ppm.log10().floor() as i32;
    let scale = 10f64.powi(decimals);
    (ppm * scale).ceil() / scale
}

/// If bogomips differ by more, the kernel's delay loop does not use the counter.
const DELAY_LOOP_PPM: f64 = 50_000.0;

/// Returns the claims of firmware, kernel and procfs.
fn other_claims(host: &Host, report: &Report, log: &KernelLog) -> Vec<Claim> {
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
fn remove_obsolete(claims: &mut Vec<Claim>, measured: Option<Hertz>) {
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

    #[test]
    fn a_rate_has_no_digit_beyond_its_uncertainty() {
        assert_eq!(to_uncertainty(2_299_998.026_3, 0.012), 2_299_998.03);
        assert_eq!(to_uncertainty(2_299_998.026_3, 2.0), 2_299_998.0);
        assert_eq!(to_uncertainty(2_299_998.026_3, 300.0), 2_300_000.0);
        assert_eq!(two_digits(0.012_31), 0.013);
        assert_eq!(two_digits(217.3), 220.0);
        assert_eq!(two_digits(0.0), 0.0);
    }

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
