//! The checks: each has the signature `fn(&Report) -> Judged`. Checks of one subject share a file.

mod clocksource;
mod cost;
mod counter;
mod drift;
mod interruptions;
mod values;

pub use cost::tsc_slow_if;
pub use values::differs;

// The vocabulary of all checks.
use crate::human::{capital, count, duration, percent, seconds, times, uptime};
use crate::report::{finding_id as id, *};
use clocksource::{other_clocksource, other_than_tsc, remove_parameter, restart, system_clock_on_19};

/// The finding of a check, without its id, or why the check is not possible. A finding that is no alarm needs neither a reason
/// nor a fix.
type Judged = Result<Finding, String>;
type Check = fn(&Report) -> Judged;

/// Every check with its id, a cause before its effects. Findings are shown in this order.
pub const CHECKS: &[(&str, Check)] = &[
    (id::TSC_DEMOTED, counter::tsc_demoted),
    (id::CLOCK_BACKWARD, values::clock_backward),
    (id::CLOCK_SLOW, cost::clock_slow),
    (id::CLOCK_COARSE, values::clock_coarse),
    (id::CLOCKSOURCE_SLOW, cost::clocksource_slow),
    (id::CLOCK_SYSCALL, cost::clock_syscall),
    (id::CLOCKSOURCE_CHANGED, clocksource::clocksource_changed),
    (id::CLOCKSOURCE_REFUSED, clocksource::clocksource_refused),
    (id::CLOCKSOURCE_NOT_PERSISTENT, clocksource::clocksource_not_persistent),
    (id::TSC_DENIED, counter::tsc_denied),
    (id::TSC_ABSENT, counter::tsc_absent),
    (id::TSC_NOT_INVARIANT, counter::tsc_not_invariant),
    (id::TSC_RATE_MISMATCH, counter::tsc_rate_mismatch),
    (id::TSC_FIRMWARE, counter::tsc_firmware),
    (id::CPU_SKEW, values::cpu_skew),
    (id::TSC_UNCHECKED, counter::tsc_unchecked),
    (id::TSC_AUTO_DEMOTED, counter::tsc_auto_demoted),
    (id::TSC_SLOW, |report| cost::tsc_slow(report, report.tsc.used_by_default)),
    (id::DRIFT, drift::drift),
    (id::WALL_CLOCK, drift::wall_clock),
    (id::CLOCK_GAPS, interruptions::clock_gaps),
];

/// Adds the findings and the verdict to the report.
pub fn judge(report: &mut Report) {
    // A check may use the findings of the checks before it.
    report.findings = Vec::new();
    for (id, check) in CHECKS {
        report.findings.push(finding(id, check(report)));
    }
    conclude(report);
}

/// Returns the finding with its id.
fn finding(id: &str, judged: Judged) -> Finding {
    let mut finding = judged.unwrap_or_else(|why| with_severity(Severity::Unknown, why));
    if finding.severity < Severity::Warning {
        (finding.why, finding.fix) = Default::default();
    }
    Finding { id: id.into(), ..finding }
}

fn with_severity(severity: Severity, summary: impl Into<String>) -> Finding {
    Finding::new("", severity, summary)
}

fn ok(summary: impl Into<String>) -> Judged {
    Ok(with_severity(Severity::Ok, summary))
}

fn warning(summary: impl Into<String>) -> Finding {
    with_severity(Severity::Warning, summary)
}

fn critical(summary: impl Into<String>) -> Finding {
    with_severity(Severity::Critical, summary)
}

/// Returns the finding with this id, if it is a warning or critical.
fn alarm<'a>(report: &'a Report, id: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.id == id && finding.severity.is_alarm())
}

/// Sets the verdict for the findings of the report: the worst finding, and its meaning for EXPLAIN ANALYZE.
pub fn conclude(report: &mut Report) {
    let severity_of = |is_wall_clock: bool| {
        let findings = report.findings.iter().filter(|f| (f.id == id::WALL_CLOCK) == is_wall_clock);
        findings.map(|f| f.severity).max().unwrap_or(Severity::Unknown)
    };
    let is_known = report.missing.is_none() && report.system().and_then(|clock| clock.cost_ns()).is_some();
    // The facts of a captured tree can raise an alarm. But without a read cost the verdict cannot be "ok", and what is missing
    // could be the problem. The wall clock says nothing about EXPLAIN.
    let severity = match severity_of(false) {
        Severity::Ok | Severity::Unknown if !is_known => Severity::Unknown,
        worst => worst.max(severity_of(true)),
    };
    // Among equal severities the first one counts, because causes come before effects. The wall clock has no effects.
    let worst = report.findings.iter().filter(|f| f.severity == severity).min_by_key(|f| f.id == id::WALL_CLOCK);
    // Captured trees and outputs are usually from another host.
    let host = if report.origin == Origin::Measured { "this host" } else { "that host" };
    let head = match severity {
        Severity::Ok => format!("EXPLAIN ANALYZE can be trusted on {host}."),
        Severity::Unknown => {
            let why = report.missing.as_deref().unwrap_or("the read cost of PostgreSQL's clock is unknown");
            format!("Not determined whether EXPLAIN ANALYZE can be trusted on {host}: {why}.")
        }
        Severity::Warning | Severity::Critical => {
            let is_one_of = |ids: &[&str]| worst.is_some_and(|worst| ids.contains(&worst.id.as_str()));
            let is_effect = is_one_of(&[id::CLOCK_SLOW, id::CLOCK_COARSE, id::CLOCK_BACKWARD]);
            let causes = if is_effect { [id::TSC_DEMOTED, id::CLOCKSOURCE_SLOW].as_slice() } else { &[] };
            let cause = causes.iter().find_map(|id| alarm(report, id));
            // Lost time is independent of the other findings, and can distort a plan more than they do.
            let loss = alarm(report, id::CLOCK_GAPS).filter(|_| !is_one_of(&[id::CLOCK_GAPS]));
            let all = [worst, cause, loss].into_iter().flatten();
            all.map(|finding| capital(&finding.summary) + ".").collect::<Vec<_>>().join(" ")
        }
    };
    // After a sentence about EXPLAIN ANALYZE "it" is clear. After another sentence it is not.
    let subject = if severity == Severity::Ok { "It" } else { "EXPLAIN ANALYZE" };
    let tail = consequence(report).map(|tail| format!(" {subject} {tail}")).unwrap_or_default();
    report.verdict = Verdict { severity, summary: head + &tail };
}

/// Returns the approximate upper bound of a query's overhead on this host, as a sentence without its subject.
fn consequence(report: &Report) -> Option<String> {
    let system = report.system()?.overhead_per_node_ns()?;
    let tsc = report.clock("rdtsc").and_then(|clock| clock.overhead_per_node_ns());
    let is_default = report.tsc.used_by_default == Some(true) && report.tsc.usable != Some(false);
    let (added, other) = match tsc {
        // The finding says that PostgreSQL 19 uses the TSC, so its cost counts.
        Some(tsc) if alarm(report, id::TSC_SLOW).is_some() => {
            (tsc, format!(" on PostgreSQL 19 ({} with the system clock)", duration(system)))
        }
        // A fault of the TSC must not look like advice to use the TSC.
        Some(tsc) if is_default && !report.findings.iter().any(|f| f.severity.is_alarm() && is_about_tsc(&f.id)) => {
            (system, format!(" ({} with PostgreSQL 19's tsc)", duration(tsc)))
        }
        _ => (system, String::new()),
    };
    let (added, rows) = (duration(added), seconds(added * 3e6));
    Some(format!(
        "adds up to about {added} per row and plan node{other}: a million rows through three nodes take up to about {rows} longer."
    ))
}

/// Returns whether a finding may concern the TSC.
pub fn is_about_tsc(finding: &str) -> bool {
    finding.starts_with("tsc-") || finding == id::CPU_SKEW || finding == id::DRIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(report: &Report) -> Verdict {
        let mut report = report.clone();
        conclude(&mut report);
        report.verdict
    }
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

    const SLOW_TSC: (&str, Severity, &str) = (id::TSC_SLOW, Severity::Critical, "the TSC is slow");
    const SLOW: (&str, Severity, &str) = (id::CLOCK_SLOW, Severity::Warning, "the clock is slow");
    const GAPS: (&str, Severity, &str) =
        (id::CLOCK_GAPS, Severity::Warning, "interruptions took at least 88.4% of the time");

    #[test]
    fn a_slow_tsc_gives_the_overhead_of_postgresql_19() {
        let with = |findings: &[_]| verdict_of(12.85, 2424.1, findings);
        assert_eq!(
            with(&[SLOW_TSC]),
            "The TSC is slow. EXPLAIN ANALYZE adds up to about 5 us per row and plan node on PostgreSQL 19 (49 ns with \
             the system clock): a million rows through three nodes take up to about 15.0 s longer."
        );
        let harmless = with(&[(id::TSC_SLOW, Severity::Ok, "x")]);
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
        let few = (id::CLOCK_GAPS, Severity::Ok, "interruptions took 1% of the time");
        assert!(!with(&[SLOW, few]).contains("nterruptions"));
        let critical = (id::CLOCK_SLOW, Severity::Critical, "the clock is slow");
        assert!(with(&[critical, GAPS]).contains("88.4%"), "the loss distorts plans whatever else is wrong");
    }

    #[test]
    fn the_wall_clock_does_not_hide_what_concerns_explain() {
        const WALL: (&str, Severity, &str) = (id::WALL_CLOCK, Severity::Warning, "the wall clock is wrong");
        let both = verdict_of(30.0, 20.0, &[WALL, GAPS]);
        assert!(both.starts_with("Interruptions took") && !both.contains("wall"), "{both}");
        assert!(verdict_of(30.0, 20.0, &[WALL]).starts_with("The wall clock is wrong. EXPLAIN ANALYZE adds"));
        let mut report = Report::empty(Origin::Measured, "");
        report.findings = vec![Finding::new(WALL.0, WALL.1, WALL.2)];
        assert_eq!(verdict(&report).severity, Severity::Unknown, "PostgreSQL's clock was not measured");
    }
}
