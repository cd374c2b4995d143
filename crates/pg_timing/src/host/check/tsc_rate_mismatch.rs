//! `tsc-rate-mismatch`: would a server convert the counter's ticks at a wrong rate?

use crate::report::{ClaimReport, Finding, Fix, Report, Severity, TscReport, finding_id};

/// A tenth of a percent: below it no reader of a plan sees the difference, and quartz (100 ppm), a
/// quick calibration at boot (500 ppm) and PostgreSQL 19's own (up to 920 ppm off, measured) all
/// stay under it. A calibration printed by pg_test_timing is given ten times as much.
const VISIBLE_PPM: f64 = 1_000.0;
/// Where PostgreSQL 19's own pg_test_timing gives its warning.
const WRONG_PPM: f64 = 100_000.0;

const ID: &str = finding_id::TSC_RATE_MISMATCH;

/// A claimed rate beside the measured one.
struct Claimed {
    who: String,
    khz: f64,
    off_ppm: f64,
    noise_ppm: f64,
    /// PostgreSQL 19 times by this claim
    in_use: bool,
}

pub fn check(report: &Report) -> Finding {
    let tsc = &report.tsc;
    let Some(&measured) = tsc.frequency_khz.known() else {
        return Finding::unknown(ID, "the counter's rate was not measured");
    };
    // Of a pg_test_timing output the rate in use is the claim, and its calibration what was measured.
    let (measured, claims) = match tsc.calibrated_khz {
        Some(calibrated) => (calibrated, vec![in_use(measured, calibrated)]),
        None => (measured, claims(tsc, measured)),
    };
    let Some(worst) = claims.iter().max_by(|a, b| a.off_ppm.abs().total_cmp(&b.off_ppm.abs())) else {
        return Finding::ok(ID, "nobody else says what the counter's rate is");
    };
    let severity = claims.iter().map(severity).max().unwrap_or(Severity::Ok);
    let worst =
        claims.iter().find(|claim| self::severity(claim) == severity && severity > Severity::Ok).unwrap_or(worst);
    let evidence = |finding: Finding| {
        claims.iter().fold(finding, |finding, claim| {
            finding.evidence(format!("{}: {:.0} kHz, {:+.1} ppm", claim.who, claim.khz, claim.off_ppm))
        })
    };
    if severity == Severity::Ok {
        let summary = format!("the claims on the counter's rate agree within {:.0} ppm", worst.off_ppm.abs().ceil());
        return evidence(Finding::ok(ID, summary));
    }
    let summary = format!(
        "the TSC's rate is {:.0} kHz by {}, but {measured:.0} kHz by measurement: {:.2}% off",
        worst.khz,
        worst.who,
        worst.off_ppm.abs() / 1e4
    );
    let finding = evidence(Finding::new(ID, severity, summary));
    match worst.in_use {
        true => finding
            .why("PostgreSQL 19 takes over this claim: every time that it measures with the TSC is wrong by as much")
            .fix(
                Fix::new("let PostgreSQL 19 time with the system clock")
                    .command("ALTER SYSTEM SET timing_clock_source = 'system'; SELECT pg_reload_conf()")
                    .undo("ALTER SYSTEM RESET timing_clock_source; SELECT pg_reload_conf()"),
            ),
        false => {
            finding.why("whoever believes this claim (a kernel without a reference, a profiler) measures wrong times")
        }
    }
}

fn claims(tsc: &TscReport, measured: f64) -> Vec<Claimed> {
    let claim = |claim: &ClaimReport| Claimed {
        who: claim.source.clone(),
        khz: claim.frequency_khz,
        off_ppm: (claim.frequency_khz - measured) / measured * 1e6,
        noise_ppm: VISIBLE_PPM.max(claim.rounding_ppm),
        in_use: tsc.postgres19_frequency_khz == Some(claim.frequency_khz),
    };
    tsc.claims.iter().map(claim).collect()
}

fn in_use(khz: f64, calibrated: f64) -> Claimed {
    Claimed {
        who: "PostgreSQL 19's frequency in use".into(),
        khz,
        off_ppm: (khz - calibrated) / calibrated * 1e6,
        noise_ppm: 10.0 * VISIBLE_PPM,
        in_use: true,
    }
}

fn severity(claim: &Claimed) -> Severity {
    // A base frequency or a delay loop often is not the counter's rate, by design.
    let loose = !claim.in_use && !claim.who.starts_with("kernel log");
    match claim.off_ppm.abs() {
        _ if loose => Severity::Ok,
        off if off >= WRONG_PPM && claim.in_use => Severity::Critical,
        off if off > claim.noise_ppm => Severity::Warning,
        _ => Severity::Ok,
    }
}
