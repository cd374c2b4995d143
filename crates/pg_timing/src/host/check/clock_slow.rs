//! `clock-slow`: does a read of PostgreSQL's clock cost too much?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{ClockReport, Finding, Fix, Report, Severity, finding_id, overhead_per_node_ns};

/// PostgreSQL's documentation of pg_test_timing calls a loop below 100 ns good.
const GOOD_NS: f64 = 100.0;
/// From here on a node's time is mostly its two reads: an executor node passes a row on in 20 to
/// 100 ns, and at 790 ns a read EXPLAIN ANALYZE of a count(*) was measured at 96 times the query.
const BAD_NS: f64 = 500.0;
/// What a good host takes in that documentation: an i7-860 with tsc, 36 ns a loop.
const GOOD_HOST_NS: f64 = 36.0;

/// Warning and critical.
pub const LIMITS_NS: (f64, f64) = (GOOD_NS, BAD_NS);

const ID: &str = finding_id::CLOCK_SLOW;

pub fn check(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return Finding::unknown(ID, "PostgreSQL's clock was not measured");
    };
    let Some(cost) = clock.cost_ns() else {
        return Finding::unknown(ID, "what a read of PostgreSQL's clock costs is unknown");
    };
    // The cost counts as high only if it still is at the low end of its spread.
    let severity = match cost - clock.read_spread_ns.unwrap_or(0.0) {
        low if low > BAD_NS => Severity::Critical,
        low if low > GOOD_NS => Severity::Warning,
        _ => {
            return Finding::ok(ID, format!("a read of PostgreSQL's clock takes {cost:.1} ns"))
                .evidence(evidence(clock, cost));
        }
    };
    let times = (cost / GOOD_HOST_NS).round();
    let summary =
        format!("PostgreSQL's clock is slow: {} a read, about {times:.0} times what a good host takes", duration(cost));
    let finding = Finding::new(ID, severity, summary).evidence(evidence(clock, cost));
    clock.distribution().into_iter().fold(finding, Finding::evidence)
        .why(format!(
            "EXPLAIN ANALYZE reads the clock twice per row and plan node: up to {} more each time. {}, and nodes with many \
             rows look dearer than they are (track_io_timing and auto_explain pay it too)",
            duration(overhead_per_node_ns(cost)),
            match severity {
                Severity::Critical => "What it prints is then mostly the clock",
                _ => "What it prints of a plan with many rows is then in good part the clock",
            }
        ))
        .fixes(other_clocksource(report))
        .fix(
            Fix::new("meanwhile, run EXPLAIN without timing (row counts and buffers stay exact), or time by sampling with the extension pg_fast_timing")
                .command("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS) SELECT ..."),
        )
}

fn evidence(clock: &ClockReport, cost: f64) -> String {
    match clock.read_ns.zip(clock.read_spread_ns) {
        Some((read, spread)) => format!("system: {read:.1} ns a read +- {:.1} ns", spread.max(0.1)),
        None => format!("system: {cost:.2} ns a loop, as pg_test_timing measures it"),
    }
}
