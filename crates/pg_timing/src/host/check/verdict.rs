//! The worst of the findings, and what it means for EXPLAIN ANALYZE.

use crate::human::{duration, seconds};
use crate::report::{Finding, Origin, Report, Severity, Verdict, finding_id, overhead_per_node_ns};

pub fn verdict(report: &Report) -> Verdict {
    let worst = report.findings.iter().max_by_key(|f| f.severity).map_or(Severity::Unknown, |f| f.severity);
    // Facts of a captured tree can raise an alarm, but without a look at the clock nothing is fine.
    let severity = match worst {
        Severity::Ok if report.system().and_then(|clock| clock.cost_ns()).is_none() => Severity::Unknown,
        worst => worst,
    };
    // The first of the gravest is the one that the order of the checks puts first.
    let gravest = report.findings.iter().find(|f| f.severity == worst);
    Verdict { severity, summary: summary(report, severity, gravest) }
}

fn summary(report: &Report, severity: Severity, gravest: Option<&Finding>) -> String {
    let head = match severity {
        Severity::Ok if report.origin == Origin::PgTestTiming => {
            "As far as this output tells, EXPLAIN ANALYZE can be trusted on that host.".into()
        }
        Severity::Ok if report.interrupted => {
            format!(
                "As far as was measured in {:.1} s, EXPLAIN ANALYZE can be trusted on this host.",
                report.measured_seconds
            )
        }
        Severity::Ok if report.origin == Origin::Captured => "EXPLAIN ANALYZE can be trusted on that host.".into(),
        Severity::Ok => "EXPLAIN ANALYZE can be trusted on this host.".into(),
        Severity::Unknown => {
            let why = match report.system().is_some() {
                true => "what a read of PostgreSQL's clock costs is unknown",
                false => "PostgreSQL's clock was not measured",
            };
            format!("Whether EXPLAIN ANALYZE can be trusted here could not be told: {why}.")
        }
        Severity::Warning | Severity::Critical => {
            let what = capital(gravest.map_or("", |f| &f.summary)) + ".";
            match cause(report, gravest) {
                Some(cause) => format!("{what} {}.", capital(&cause.summary)),
                None => what,
            }
        }
    };
    match consequence(report) {
        // Behind the sentence about EXPLAIN ANALYZE "its" is clear; behind another it is not.
        Some(tail) if severity == Severity::Ok => format!("{head} Its {tail}"),
        Some(tail) => format!("{head} EXPLAIN ANALYZE's {tail}"),
        None => head,
    }
}

/// Why the clock is slow, coarse or goes back, if another finding says it.
fn cause<'a>(report: &'a Report, gravest: Option<&Finding>) -> Option<&'a Finding> {
    let effects = [finding_id::CLOCK_SLOW, finding_id::CLOCK_COARSE, finding_id::CLOCK_BACKWARD];
    gravest.filter(|f| effects.contains(&f.id.as_str()))?;
    let causes = [finding_id::TSC_DEMOTED, finding_id::CLOCKSOURCE_SLOW];
    report.findings.iter().find(|f| causes.contains(&f.id.as_str()) && f.severity >= Severity::Warning)
}

/// What a query pays at most on this host.
fn consequence(report: &Report) -> Option<String> {
    let added = overhead_per_node_ns(report.system()?.cost_ns()?);
    let fast = report
        .tsc
        .used_by_default
        .filter(|by_default| *by_default && report.tsc.usable != Some(false))
        .and_then(|_| report.clock("rdtsc")?.cost_ns())
        .map(|read| format!(" ({} with PostgreSQL 19's tsc)", duration(overhead_per_node_ns(read))))
        .unwrap_or_default();
    Some(format!(
        "timing adds up to {} per row and plan node{fast}: a million rows through three nodes take up to {} longer.",
        duration(added),
        seconds(added * 3e6)
    ))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
