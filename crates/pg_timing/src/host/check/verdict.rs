//! The verdict: the worst finding, and its meaning for EXPLAIN ANALYZE.

use super::alarm;
use crate::human::{duration, seconds};
use crate::report::{Finding, Origin, Report, Severity, Verdict, finding_id};

/// Returns the verdict for the findings of the report.
pub fn verdict(report: &Report) -> Verdict {
    let worst = report.findings.iter().max_by_key(|f| f.severity).map_or(Severity::Unknown, |f| f.severity);
    // The facts of a captured tree can raise an alarm. But without a read cost the verdict cannot be "ok".
    let severity = match worst {
        Severity::Ok if report.system().and_then(|clock| clock.cost_ns()).is_none() => Severity::Unknown,
        // What is missing could be the problem.
        Severity::Ok if report.missing.is_some() => Severity::Unknown,
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
            let why = match (&report.missing, report.system()) {
                (Some(missing), _) => missing,
                (None, Some(_)) => "the read cost of PostgreSQL's clock is unknown",
                (None, None) => "PostgreSQL's clock was not measured",
            };
            format!("Not determined whether EXPLAIN ANALYZE can be trusted on {} host: {why}.", this_or_that(report))
        }
        Severity::Warning | Severity::Critical => {
            let what = capital(worst.map_or("", |f| &f.summary)) + ".";
            let others = cause(report, worst).into_iter().chain(loss(report, worst));
            others.fold(what, |text, finding| format!("{text} {}.", capital(&finding.summary)))
        }
    };
    match consequence(report) {
        // After a sentence about EXPLAIN ANALYZE "it" is clear. After another sentence it is not.
        Some(tail) if severity == Severity::Ok => format!("{head} It {tail}"),
        Some(tail) => format!("{head} EXPLAIN ANALYZE {tail}"),
        None => head,
    }
}

/// Returns the finding that causes a slow, coarse or backward clock, if there is one.
fn cause<'a>(report: &'a Report, worst: Option<&Finding>) -> Option<&'a Finding> {
    let effects = [finding_id::CLOCK_SLOW, finding_id::CLOCK_COARSE, finding_id::CLOCK_BACKWARD];
    worst.filter(|f| effects.contains(&f.id.as_str()))?;
    let causes = [finding_id::TSC_DEMOTED, finding_id::CLOCKSOURCE_SLOW];
    causes.iter().find_map(|id| alarm(report, id))
}

/// Returns the finding about lost time, unless it is the worst. The loss is independent of the other findings, and can
/// distort a plan more than they do.
fn loss<'a>(report: &'a Report, worst: Option<&Finding>) -> Option<&'a Finding> {
    alarm(report, finding_id::CLOCK_GAPS).filter(|gaps| worst.is_none_or(|worst| worst.id != gaps.id))
}

/// Returns the approximate upper bound of a query's overhead on this host, as a sentence without its subject.
fn consequence(report: &Report) -> Option<String> {
    let system = report.system()?.overhead_per_node_ns()?;
    let tsc = report.clock("rdtsc").and_then(|clock| clock.overhead_per_node_ns());
    let is_default = report.tsc.used_by_default == Some(true) && report.tsc.usable != Some(false);
    let (added, other) = match tsc {
        // The finding says that PostgreSQL 19 uses the TSC, so its cost counts.
        Some(tsc) if alarm(report, finding_id::TSC_SLOW).is_some() => {
            (tsc, format!(" on PostgreSQL 19 ({} with the system clock)", duration(system)))
        }
        Some(tsc) if is_default && !has_tsc_fault(report) => {
            (system, format!(" ({} with PostgreSQL 19's tsc)", duration(tsc)))
        }
        _ => (system, String::new()),
    };
    Some(format!(
        "adds up to about {} per row and plan node{other}: a million rows through three nodes take up to about {} longer.",
        duration(added),
        seconds(added * 3e6)
    ))
}

/// Returns whether a finding may concern the TSC. Then the TSC's lower cost must not look like advice to use the TSC.
fn has_tsc_fault(report: &Report) -> bool {
    let faults = [
        finding_id::CPU_SKEW,
        finding_id::TSC_RATE_MISMATCH,
        finding_id::TSC_UNCHECKED,
        finding_id::TSC_AUTO_DEMOTED,
        finding_id::TSC_NOT_INVARIANT,
        finding_id::TSC_SLOW,
        finding_id::DRIFT,
    ];
    faults.iter().any(|id| alarm(report, id).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ClockReport, SYSTEM};

    /// Returns the verdict for the read costs and these findings.
    fn verdict_of(system_ns: f64, rdtsc_ns: f64, findings: &[(&str, Severity, &str)]) -> String {
        let mut report = Report::empty(Origin::Measured, "");
        let clock =
            |(name, ns): (&str, f64)| ClockReport { name: name.into(), read_ns: Some(ns), ..ClockReport::default() };
        report.clocks = [(SYSTEM, system_ns), ("rdtsc", rdtsc_ns)].map(clock).into();
        report.tsc.used_by_default = Some(true);
        report.findings =
            findings.iter().map(|(id, severity, summary)| Finding::new(id, *severity, *summary)).collect();
        verdict(&report).summary
    }

    const SLOW_TSC: (&str, Severity, &str) = (finding_id::TSC_SLOW, Severity::Critical, "the TSC is slow");
    const SLOW: (&str, Severity, &str) = (finding_id::CLOCK_SLOW, Severity::Warning, "the clock is slow");
    const GAPS: (&str, Severity, &str) =
        (finding_id::CLOCK_GAPS, Severity::Warning, "interruptions took at least 88.4% of the time");

    #[test]
    fn a_slow_tsc_gives_the_overhead_of_postgresql_19() {
        let with = |findings: &[_]| verdict_of(12.85, 2424.1, findings);
        assert_eq!(
            with(&[SLOW_TSC]),
            "The TSC is slow. EXPLAIN ANALYZE adds up to about 5 us per row and plan node on PostgreSQL 19 (49 ns with \
             the system clock): a million rows through three nodes take up to about 15.0 s longer."
        );
        let harmless = with(&[(finding_id::TSC_SLOW, Severity::Ok, "x")]);
        assert!(harmless.contains("It adds up to about 49 ns per row and plan node (5 us with"), "{harmless}");
    }

    #[test]
    fn a_large_loss_is_part_of_the_verdict() {
        let with = |findings: &[_]| verdict_of(194.0, 20.0, findings);
        let both = with(&[SLOW, GAPS]);
        assert!(
            both.starts_with("The clock is slow. Interruptions took at least 88.4% of the time. EXPLAIN ANALYZE adds"),
            "{both}"
        );
        assert_eq!(with(&[GAPS]).matches("nterruptions").count(), 1);
        let few = (finding_id::CLOCK_GAPS, Severity::Ok, "interruptions took 1% of the time");
        assert!(!with(&[SLOW, few]).contains("nterruptions"));
        let critical = (finding_id::CLOCK_SLOW, Severity::Critical, "the clock is slow");
        assert!(with(&[critical, GAPS]).contains("88.4%"), "the loss distorts plans whatever else is wrong");
    }
}
