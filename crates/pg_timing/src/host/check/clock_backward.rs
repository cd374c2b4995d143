//! `clock-backward`: did a clock go back?

use super::advice::other_clocksource;
use crate::human::{count, duration};
use crate::report::{ClockReport, Finding, Fix, Report, SETTABLE_CLOCK, Severity, finding_id};

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
    let summary = format!("time went back {by} (clock {}): do not trust any timing on the host", worst.name);
    let finding = Finding::new(ID, Severity::Critical, summary).why(
        "if time goes back during an interval, its duration is too short or negative, in EXPLAIN ANALYZE and in the \
         server's log",
    );
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
