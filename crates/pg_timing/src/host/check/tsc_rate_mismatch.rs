//! `tsc-rate-mismatch`: would a server or the kernel use a wrong rate for the counter?

use super::advice::system_clock_on_19;
use crate::report::{ClaimReport, Finding, Fix, Report, Severity, TscReport, finding_id};
use timing_clock::ClaimSource;

/// 0.1%. No reader of a plan sees a smaller difference. The errors of quartz crystals (100 ppm), of a quick calibration
/// at boot (500 ppm) and of PostgreSQL 19's calibration (up to 920 ppm, measured) are smaller. For a calibration
/// printed by pg_test_timing the limit is ten times as large.
const VISIBLE_PPM: f64 = 1_000.0;
/// Above this difference, PostgreSQL 19's pg_test_timing warns.
const WRONG_PPM: f64 = 100_000.0;

const ID: &str = finding_id::TSC_RATE_MISMATCH;

/// A claimed rate, compared with the measured one.
struct Claimed {
    source: String,
    khz: f64,
    /// difference from the measured rate
    error_ppm: f64,
    /// smaller differences are not an alarm
    noise_ppm: f64,
    /// PostgreSQL 19 uses this rate
    in_use: bool,
}

pub fn check(report: &Report) -> Finding {
    let tsc = &report.tsc;
    let Some(&measured) = tsc.frequency_khz.known() else {
        return Finding::unknown(ID, "the counter's rate was not measured");
    };
    // In the output of pg_test_timing the rate in use is the claim, and the calibration is the measured rate.
    let (measured, claims) = match tsc.calibrated_khz {
        Some(calibrated) => (calibrated, vec![in_use(measured, calibrated)]),
        None => (measured, claims(tsc, measured)),
    };
    let Some(worst) = claims.iter().max_by(|a, b| a.error_ppm.abs().total_cmp(&b.error_ppm.abs())) else {
        return Finding::ok(ID, "no other source states the counter's rate");
    };
    let severity = claims.iter().map(severity).max().unwrap_or(Severity::Ok);
    let worst =
        claims.iter().find(|claim| self::severity(claim) == severity && severity > Severity::Ok).unwrap_or(worst);
    let evidence = |finding: Finding| {
        claims.iter().fold(finding, |finding, claim| {
            let error = match claim.in_use && claim.error_ppm.abs() > 10.0 * VISIBLE_PPM {
                true => format!("times {}", wrong_times(measured / claim.khz)),
                false => format!("{:+.1} ppm", claim.error_ppm),
            };
            finding.evidence(format!("{}: {:.0} kHz, {error}", claim.source, claim.khz))
        })
    };
    if severity == Severity::Ok {
        let summary = format!("the sources of the counter's rate agree within {:.0} ppm", worst.error_ppm.abs().ceil());
        return evidence(Finding::ok(ID, summary));
    }
    if worst.source == ClaimSource::KernelRecalibrated.to_string() {
        return evidence(kernel_rate(worst, measured, severity));
    }
    let summary = format!(
        "the TSC's rate is {:.0} kHz according to {}, but the measured rate is {measured:.0} kHz: times by it are {}",
        worst.khz,
        worst.source,
        wrong_times(measured / worst.khz)
    );
    let finding = evidence(Finding::new(ID, severity, summary));
    match worst.in_use {
        true => finding
            .why("PostgreSQL 19 divides ticks by this rate, so all times that it measures with the TSC are wrong by that much")
            .fix(system_clock_on_19()),
        false => {
            finding.why("programs that use this rate (a kernel without a reference, a profiler) report wrong times")
        }
    }
}

/// Returns the finding for a kernel that measured another rate than the one that its own clock uses.
fn kernel_rate(recalibrated: &Claimed, used: f64, severity: Severity) -> Finding {
    let (khz, percent) = (recalibrated.khz, recalibrated.error_ppm.abs() / 1e4);
    let summary = format!(
        "the kernel's clock uses a TSC rate of {used:.0} kHz, but the kernel measured {khz:.0} kHz with another timer: a \
         difference of {percent:.2}%"
    );
    Finding::new(ID, severity, summary)
        .why(
            "with tsc=recalibrate the kernel measures the rate, but does not use it. If the other timer is right, all clocks \
             of this host are wrong by that much, and so are EXPLAIN's times. NTP corrects at most 0.05%",
        )
        .fix(
            Fix::new(format!(
                "give the kernel the measured rate with the boot parameter tsc_early_khz={khz:.0} (Linux 5.8 and newer) and \
                 restart; new firmware can repair the rate in all programs"
            ))
            .undo("remove the boot parameter and restart")
            .risk("the restart stops everything on this machine; if the other timer is wrong, the clock becomes wrong"),
        )
}

fn claims(tsc: &TscReport, measured: f64) -> Vec<Claimed> {
    let claim = |claim: &ClaimReport| Claimed {
        source: claim.source.clone(),
        khz: claim.frequency_khz,
        error_ppm: (claim.frequency_khz - measured) / measured * 1e6,
        noise_ppm: VISIBLE_PPM.max(claim.rounding_ppm),
        in_use: tsc.postgres19_frequency_khz == Some(claim.frequency_khz),
    };
    tsc.claims.iter().map(claim).collect()
}

fn in_use(khz: f64, calibrated: f64) -> Claimed {
    Claimed {
        source: "PostgreSQL 19's frequency in use".into(),
        khz,
        // PostgreSQL's own measure, which is also the error of the times
        error_ppm: (calibrated - khz) / khz * 1e6,
        noise_ppm: 10.0 * VISIBLE_PPM,
        in_use: true,
    }
}

/// Returns how wrong times are: a time is ticks divided by the rate, so `factor` is the true rate divided by the used one.
fn wrong_times(factor: f64) -> String {
    let percent = (factor - 1.0).abs() * 100.0;
    let decimals = if percent < 1.0 { 2 } else { 1 };
    match factor {
        2.0.. => format!("{factor:.0} times too long"),
        1.0.. => format!("{percent:.decimals$}% too long"),
        _ => format!("{percent:.decimals$}% too short"),
    }
}

fn severity(claim: &Claimed) -> Severity {
    // By design, a base frequency or a delay loop often differs from the counter's rate.
    let approximate = !claim.in_use && !claim.source.starts_with("kernel log");
    match claim.error_ppm.abs() {
        _ if approximate => Severity::Ok,
        off if off >= WRONG_PPM && claim.in_use => Severity::Critical,
        off if off > claim.noise_ppm => Severity::Warning,
        _ => Severity::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fact, Origin};

    /// A counter whose measured rate, against the kernel's clock, is 2500 MHz.
    fn judged(claims: &[(ClaimSource, f64)]) -> Finding {
        let claim = |&(source, khz): &(ClaimSource, f64)| ClaimReport {
            source: source.to_string(),
            frequency_khz: khz,
            rounding_ppm: 0.2,
            disagreement_ppm: None,
        };
        let tsc = TscReport {
            frequency_khz: Fact::Known(2_500_000.0),
            postgres19_frequency_khz: Some(2_500_000.0),
            claims: claims.iter().map(claim).collect(),
            ..TscReport::unavailable("")
        };
        check(&Report { tsc, ..Report::empty(Origin::Measured, "") })
    }

    #[test]
    fn a_rate_that_the_kernel_measured_and_does_not_use_is_a_warning() {
        let agreeing = (ClaimSource::Cpuid15, 2_500_000.0);
        let finding = judged(&[agreeing, (ClaimSource::KernelRecalibrated, 2_400_000.0)]);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.summary.contains("the kernel measured 2400000 kHz"), "{finding:?}");
        assert!(finding.fix[0].what.contains("tsc_early_khz=2400000"), "{finding:?}");
        // The kernel's own limit for its warning is 500 ppm, and a timer's crystal can be wrong by 100 ppm.
        let finding = judged(&[agreeing, (ClaimSource::KernelRecalibrated, 2_500_900.0)]);
        assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
    }

    #[test]
    fn sources_that_often_differ_are_no_alarm() {
        let finding = judged(&[(ClaimSource::KernelRefined, 2_400_000.0), (ClaimSource::Bogomips, 2_400_000.0)]);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.summary.contains("according to kernel log (refined)"), "{finding:?}");
        assert_eq!(judged(&[(ClaimSource::Bogomips, 2_400_000.0)]).severity, Severity::Ok, "it is often another rate");
    }
}
