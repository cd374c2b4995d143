//! `clock-backward`: did a clock that PostgreSQL reads ever go back?

use super::advice::other_clocksource;
use crate::render::human::{count, duration};
use crate::report::{ClockReport, Finding, Fix, Report, SYSTEM, Severity};

/// The clocks that a PostgreSQL server reads. The others may step (REALTIME is set by hand).
const READ_BY_POSTGRESQL: &[&str] = &[SYSTEM, "rdtscp", "rdtsc"];

const ID: &str = "clock-backward";

pub fn check(report: &Report) -> Finding {
    let read: Vec<&ClockReport> = READ_BY_POSTGRESQL.iter().filter_map(|name| report.clock(name)).collect();
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
            duration(clock.largest_backward_ns),
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
        .fix(other_clocksource(report))
}
