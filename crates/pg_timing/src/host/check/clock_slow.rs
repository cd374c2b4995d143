//! `clock-slow`: is a read of PostgreSQL's clock too expensive?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{ClockReport, Finding, Fix, Report, Severity, finding_id, overhead_per_node_ns};

/// PostgreSQL's documentation of pg_test_timing calls a loop below 100 ns good.
const GOOD_NS: f64 = 100.0;
/// Above this, most of a node's time is its two reads: an executor node returns a row in 20 to 100 ns. With 790 ns per
/// read, EXPLAIN ANALYZE of a count(*) took 96 times as long as the query.
const BAD_NS: f64 = 500.0;
/// The good host in that documentation, an i7-860 with tsc, takes 36 ns per loop.
const GOOD_HOST_NS: f64 = 36.0;

/// The limits for warning and critical, in ns per read.
pub const LIMITS_NS: (f64, f64) = (GOOD_NS, BAD_NS);

const ID: &str = finding_id::CLOCK_SLOW;

pub fn check(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return Finding::unknown(ID, "PostgreSQL's clock was not measured");
    };
    let Some(cost) = clock.cost_ns() else {
        return Finding::unknown(ID, "the read cost of PostgreSQL's clock is unknown");
    };
    // The alarm must exceed the noise, so the low end of the spread counts.
    let severity = match cost - clock.read_spread_ns.unwrap_or(0.0) {
        low if low > BAD_NS => Severity::Critical,
        low if low > GOOD_NS => Severity::Warning,
        _ => {
            return Finding::ok(ID, format!("one read of PostgreSQL's clock takes {cost:.1} ns"))
                .evidence(evidence(clock, cost));
        }
    };
    let times = (cost / GOOD_HOST_NS).round();
    let summary = format!(
        "PostgreSQL's clock is slow: {} per read, about {times:.0} times as much as on a good host",
        duration(cost)
    );
    let finding = Finding::new(ID, severity, summary).evidence(evidence(clock, cost));
    clock.distribution().into_iter().fold(finding, Finding::evidence)
        .why(format!(
            "EXPLAIN ANALYZE reads the clock twice per row and plan node, which adds up to {}. {}, and nodes with many rows \
             look more expensive than they are. track_io_timing and auto_explain read the same clock",
            duration(overhead_per_node_ns(cost)),
            match severity {
                Severity::Critical => "Most of the time that it reports is then overhead",
                _ => "In plans with many rows, a large part of the time that it reports is then overhead",
            }
        ))
        .fixes(other_clocksource(report))
        .fix(
            Fix::new("until it is fixed: run EXPLAIN without timing (row counts and buffers stay exact), or use the extension pg_fast_timing")
                .command("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS) SELECT ..."),
        )
}

fn evidence(clock: &ClockReport, cost: f64) -> String {
    match clock.read_ns.zip(clock.read_spread_ns) {
        Some((read, spread)) => format!("system: {read:.1} ns +- {:.1} ns per read", spread.max(0.1)),
        None => format!("system: {cost:.2} ns per loop, as pg_test_timing measures it"),
    }
}
