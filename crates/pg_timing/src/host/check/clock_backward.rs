//! `clock-backward`: did a clock ever go back?

use super::advice::other_clocksource;
use crate::human::{count, duration};
use crate::report::{ClockReport, Finding, Fix, Report, Severity, finding_id};

/// The one clock that may go back: it is set by hand and by NTP.
const SET_BY_HAND: &str = "realtime";

const ID: &str = finding_id::CLOCK_BACKWARD;

pub fn check(report: &Report) -> Finding {
    // A clock of unknown rate counts too: its steps back were seen all the same.
    let looked_at = |clock: &&ClockReport| clock.name != SET_BY_HAND && (clock.reads > 0 || clock.backward_steps > 0);
    let read: Vec<&ClockReport> = report.clocks.iter().filter(looked_at).collect();
    if read.is_empty() {
        return Finding::unknown(ID, "no clock was measured");
    }
    let back: Vec<&&ClockReport> = read.iter().filter(|clock| clock.backward_steps > 0).collect();
    let Some(worst) = back.iter().max_by(|a, b| a.largest_backward_ns.total_cmp(&b.largest_backward_ns)) else {
        let reads: u64 = read.iter().map(|clock| clock.reads).sum();
        return Finding::ok(ID, format!("no clock went back in {} readings", count(reads)));
    };
    let by = match worst.largest_backward_ns {
        0.0 => "by an amount that is not told".to_string(),
        ns => format!("by up to {}", duration(ns)),
    };
    let summary = format!("time went back {by} (clock {}): no timing on this host can be trusted", worst.name);
    let finding = Finding::new(ID, Severity::Critical, summary).why(
        "a span that a backward step falls into comes out too short or negative, in EXPLAIN ANALYZE as in the \
         log's durations",
    );
    let finding = back.iter().fold(finding, |finding, clock| {
        let steps = if clock.backward_steps == 1 { "step" } else { "steps" };
        finding.evidence(format!(
            "{}: {} {steps} back, the largest {}{}",
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
            Fix::new(
                "in a virtual machine, restart it: clocks lose their step after the host sleeps or the guest is moved",
            )
            .risk("stops what runs in it"),
        )
        .fixes(other_clocksource(report))
}
