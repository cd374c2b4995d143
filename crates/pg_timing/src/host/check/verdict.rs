//! The verdict: the worst finding, and its meaning for EXPLAIN ANALYZE.

use crate::human::{duration, seconds};
use crate::report::{Finding, Origin, Report, Severity, Verdict, finding_id, overhead_per_node_ns};

/// Returns the verdict for the findings of the report.
pub fn verdict(report: &Report) -> Verdict {
    let worst = report.findings.iter().max_by_key(|f| f.severity).map_or(Severity::Unknown, |f| f.severity);
    // The facts of a captured tree can raise an alarm. But without a read cost the verdict cannot be "ok".
    let severity = match worst {
        Severity::Ok if report.system().and_then(|clock| clock.cost_ns()).is_none() => Severity::Unknown,
        worst => worst,
    };
    // Among equal severities the first one counts, because causes come before effects.
    let first_worst = report.findings.iter().find(|f| f.severity == worst);
    Verdict { severity, summary: summary(report, severity, first_worst) }
}

fn summary(report: &Report, severity: Severity, worst: Option<&Finding>) -> String {
    let head = match severity {
        Severity::Ok if report.origin == Origin::PgTestTiming => {
            "This output shows no problem: EXPLAIN ANALYZE can be trusted on that host.".into()
        }
        Severity::Ok if report.interrupted => {
            format!(
                "The measurement of {:.1} s shows no problem: EXPLAIN ANALYZE can be trusted on this host.",
                report.measured_seconds
            )
        }
        Severity::Ok if report.origin == Origin::Captured => "EXPLAIN ANALYZE can be trusted on that host.".into(),
        Severity::Ok => "EXPLAIN ANALYZE can be trusted on this host.".into(),
        Severity::Unknown => {
            let why = match report.system().is_some() {
                true => "the read cost of PostgreSQL's clock is unknown",
                false => "PostgreSQL's clock was not measured",
            };
            format!("Not determined whether EXPLAIN ANALYZE can be trusted on {} host: {why}.", this_or_that(report))
        }
        Severity::Warning | Severity::Critical => {
            let what = capital(worst.map_or("", |f| &f.summary)) + ".";
            match cause(report, worst) {
                Some(cause) => format!("{what} {}.", capital(&cause.summary)),
                None => what,
            }
        }
    };
    match consequence(report) {
        // After a sentence about EXPLAIN ANALYZE "its" is clear. After another sentence it is not.
        Some(tail) if severity == Severity::Ok => format!("{head} Its {tail}"),
        Some(tail) => format!("{head} EXPLAIN ANALYZE's {tail}"),
        None => head,
    }
}

/// Returns the finding that causes a slow, coarse or backward clock, if there is one.
fn cause<'a>(report: &'a Report, worst: Option<&Finding>) -> Option<&'a Finding> {
    let effects = [finding_id::CLOCK_SLOW, finding_id::CLOCK_COARSE, finding_id::CLOCK_BACKWARD];
    worst.filter(|f| effects.contains(&f.id.as_str()))?;
    let causes = [finding_id::TSC_DEMOTED, finding_id::CLOCKSOURCE_SLOW];
    report.findings.iter().find(|f| causes.contains(&f.id.as_str()) && f.severity >= Severity::Warning)
}

/// Returns the largest overhead of a query on this host, as a sentence without its subject.
fn consequence(report: &Report) -> Option<String> {
    let added = overhead_per_node_ns(report.system()?.cost_ns()?);
    let fast = report
        .tsc
        .used_by_default
        .filter(|by_default| *by_default && report.tsc.usable != Some(false) && !has_tsc_fault(report))
        .and_then(|_| report.clock("rdtsc")?.cost_ns())
        .map(|read| format!(" ({} with PostgreSQL 19's tsc)", duration(overhead_per_node_ns(read))))
        .unwrap_or_default();
    Some(format!(
        "timing adds up to {} per row and plan node{fast}: a million rows through three nodes take up to {} longer.",
        duration(added),
        seconds(added * 3e6)
    ))
}

/// Returns whether a finding may concern the TSC. Then its lower cost must not look like advice to use it.
fn has_tsc_fault(report: &Report) -> bool {
    let faults = [
        finding_id::CPU_SKEW,
        finding_id::TSC_RATE_MISMATCH,
        finding_id::TSC_UNCHECKED,
        finding_id::TSC_AUTO_DEMOTED,
        finding_id::DRIFT,
    ];
    report.findings.iter().any(|f| f.severity >= Severity::Warning && faults.contains(&f.id.as_str()))
}

/// Returns the word before "host". Captured trees and outputs are usually from another host.
fn this_or_that(report: &Report) -> &'static str {
    if report.origin == Origin::Measured { "this" } else { "that" }
}

/// Returns the text with a capital first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
