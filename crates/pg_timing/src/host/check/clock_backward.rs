//! `clock-backward`: did a clock go back?

use super::advice::other_clocksource;
use crate::human::{count, duration};
use crate::report::{ClockReport, Finding, Fix, Report, SETTABLE_CLOCK, SYSTEM, Severity, finding_id};

const ID: &str = finding_id::CLOCK_BACKWARD;

pub fn check(report: &Report) -> Finding {
    // A clock of unknown rate counts, too: a backward step needs no rate.
    let checked = |clock: &&ClockReport| clock.name != SETTABLE_CLOCK && (clock.reads > 0 || clock.backward_steps > 0);
    let read: Vec<&ClockReport> = report.clocks.iter().filter(checked).collect();
    if read.is_empty() {
        return Finding::unknown(ID, "no clock was measured");
    }
    let back: Vec<&&ClockReport> = read.iter().filter(|clock| clock.backward_steps > 0).collect();
    let Some(worst) = back.iter().max_by(|a, b| a.largest_backward_ns.total_cmp(&b.largest_backward_ns)) else {
        let reads = read.iter().map(|clock| clock.reads).fold(0, u64::saturating_add);
        return Finding::ok(ID, format!("no clock went back in {} readings", count(reads)));
    };
    let by = match worst.largest_backward_ns {
        0.0 => "by an unknown amount".to_string(),
        ns => format!("by up to {}", duration(ns)),
    };
    let finding = match back.iter().any(|clock| concerns_postgresql(report, clock)) {
        true => {
            let summary = format!("time went back {by} (clock {}): do not trust any timing on the host", worst.name);
            Finding::new(ID, Severity::Critical, summary).why(
                "if time goes back during an interval, its duration is too short or negative, in EXPLAIN ANALYZE and in the \
                 server's log",
            )
        }
        false => {
            let summary = format!("the clock {} went back {by}; PostgreSQL does not read it", worst.name);
            Finding::new(ID, Severity::Warning, summary).why("programs that read this clock measure wrong times")
        }
    };
    let finding = back.iter().fold(finding, |finding, clock| {
        let steps = if clock.backward_steps == 1 { "backward step" } else { "backward steps" };
        finding.evidence(format!(
            "{}: {} {steps}, the largest {}{}",
            clock.name,
            count(clock.backward_steps),
            if clock.largest_backward_ns > 0.0 {
                duration(clock.largest_backward_ns)
            } else {
                "of unknown size".into()
            },
            if clock.reads > 0 { format!(", in {} readings", count(clock.reads)) } else { String::new() }
        ))
    });
    finding
        .fix(
            Fix::new("in a virtual machine, restart it: a sleep of the host or a migration can break its clocks")
                .risk("stops everything in it"),
        )
        .fixes(other_clocksource(report))
}

/// Returns whether PostgreSQL reads this clock, or a clock that is computed from the same counter.
fn concerns_postgresql(report: &Report, clock: &ClockReport) -> bool {
    let counter_is_used = report.tsc.accepted_by_kernel != Some(false)
        || report.tsc.independent != Some(true)
        || report.tsc.used_by_default != Some(false);
    match clock.name.as_str() {
        SYSTEM | "system_syscall" => true,
        name if ["rdtsc", "cntvct"].iter().any(|counter| name.contains(counter)) => counter_is_used,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    #[test]
    fn a_clock_that_postgresql_does_not_read_is_a_warning() {
        let severity = |name: &str, counter_is_used: bool| {
            let mut report = Report::empty(Origin::Measured, "");
            let backward =
                ClockReport { reads: 10, backward_steps: 1, largest_backward_ns: 5.0, ..ClockReport::default() };
            report.clocks = vec![ClockReport { name: name.into(), ..backward }];
            report.tsc.accepted_by_kernel = Some(counter_is_used);
            report.tsc.independent = Some(!counter_is_used);
            report.tsc.used_by_default = Some(false);
            check(&report).severity
        };
        for (name, if_unused, if_used) in [
            ("system", Severity::Critical, Severity::Critical),
            ("rdtsc", Severity::Warning, Severity::Critical),
            ("boottime", Severity::Warning, Severity::Warning),
            ("realtime", Severity::Unknown, Severity::Unknown),
        ] {
            assert_eq!((severity(name, false), severity(name, true)), (if_unused, if_used), "{name}");
        }
    }
}
