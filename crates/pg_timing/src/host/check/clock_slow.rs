//! `clock-slow`: is a read of PostgreSQL's clock too expensive?

use super::advice::other_clocksource;
use crate::human::duration;
use crate::report::{ClockReport, Finding, Fix, GOOD_READ_NS, INTERRUPTED_SHARE, Report, Severity, finding_id};
use crate::statistics::RUN_TO_RUN_VARIATION;

/// Above this, most of a node's time is its two reads: an executor node returns a row in 20 to 100 ns. With 790 ns per
/// read, EXPLAIN ANALYZE of a count(*) took 96 times as long as the query.
const BAD_NS: f64 = 500.0;
/// The good host in that documentation, an i7-860 with tsc, takes 36 ns per loop.
const GOOD_HOST_NS: f64 = 36.0;

/// With a larger spread, as a share of the read cost, the median does not describe the clock.
const NOISY: f64 = 0.5;

/// The limits for warning and critical, in ns per read.
pub const LIMITS_NS: (f64, f64) = (GOOD_READ_NS, BAD_NS);

const ID: &str = finding_id::CLOCK_SLOW;

pub fn check(report: &Report) -> Finding {
    let Some(clock) = report.system() else {
        return Finding::unknown(ID, "PostgreSQL's clock was not measured");
    };
    let (Some(cost), Some(overhead)) = (clock.cost_ns(), clock.overhead_per_node_ns()) else {
        return Finding::unknown(ID, "the read cost of PostgreSQL's clock is unknown");
    };
    let distorted = clock.gaps.is_some_and(|gaps| gaps.share > INTERRUPTED_SHARE);
    if distorted && clock.read_ns.or(clock.undisturbed_ns).is_none() {
        return Finding::unknown(ID, format!("interruptions are part of the {cost:.2} ns per loop"));
    }
    let low = low_ns(clock, cost);
    let severity = match low {
        low if low > BAD_NS => Severity::Critical,
        low if low > GOOD_READ_NS => Severity::Warning,
        _ => {
            return Finding::ok(ID, format!("one read of PostgreSQL's clock takes {cost:.1} ns"))
                .evidence(evidence(clock, cost));
        }
    };
    // The median of a busy machine contains the time of other programs.
    let (at_least, shown) = match clock.read_spread_ns.is_some_and(|spread| spread > NOISY * cost) {
        true => ("at least ", low),
        false => ("", cost),
    };
    let times = (shown / GOOD_HOST_NS).round();
    let summary = format!(
        "PostgreSQL's clock is slow: {at_least}{} per read, about {times:.0} times as much as on a good host",
        duration(shown)
    );
    let finding = Finding::new(ID, severity, summary).evidence(evidence(clock, cost));
    clock.distribution().into_iter().fold(finding, Finding::evidence)
        .why(format!(
            "EXPLAIN ANALYZE reads the clock twice per row and plan node, and adds up to about {}. {}, and nodes with many rows \
             look more expensive than they are. track_io_timing and auto_explain read the same clock",
            duration(overhead),
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

/// Returns a lower bound of the clock's own read cost. Noise must neither cause an alarm nor hide it.
///
/// A busy machine makes reads longer and never shorter. So the 5th percentile counts, minus the run-to-run variation of
/// a quiet machine. Older reports do not have this percentile. Then the low end of the spread counts, or the median of
/// single reads, whose error is one step.
fn low_ns(clock: &ClockReport, cost: f64) -> f64 {
    // The output of pg_test_timing has no read cost.
    if let (Some(_), Some(undisturbed)) = (clock.read_ns, clock.undisturbed_ns) {
        return undisturbed * (1.0 - RUN_TO_RUN_VARIATION);
    }
    let low_end = cost - clock.read_spread_ns.unwrap_or(0.0);
    let single = clock.percentiles.zip(clock.granularity_ns).map(|(percentiles, step)| percentiles.p50_ns - step);
    low_end.max(single.unwrap_or(0.0).min(cost))
}

fn evidence(clock: &ClockReport, cost: f64) -> String {
    match clock.read_ns.zip(clock.read_spread_ns) {
        Some((read, spread)) => {
            let low = clock.undisturbed_ns.map(|low| format!("; 95% of the reads took {low:.1} ns or more"));
            format!("system: {read:.1} ns +- {:.1} ns per read{}", spread.max(0.1), low.unwrap_or_default())
        }
        None if clock.read_ns.is_none() && clock.undisturbed_ns.is_some() => {
            format!("system: {cost:.2} ns per loop, without the interruptions")
        }
        None => format!("system: {cost:.2} ns per loop, as pg_test_timing measures it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Origin, Percentiles, SYSTEM};

    fn finding(clock: ClockReport) -> Finding {
        let mut report = Report::empty(Origin::Measured, "");
        report.clocks = vec![ClockReport { name: SYSTEM.into(), reads: 1000, ..clock }];
        check(&report)
    }

    fn clock(read_ns: f64, spread_ns: f64, undisturbed_ns: Option<f64>) -> ClockReport {
        ClockReport {
            read_ns: Some(read_ns),
            read_spread_ns: Some(spread_ns),
            undisturbed_ns,
            granularity_ns: Some(1.0),
            ..ClockReport::default()
        }
    }

    #[test]
    fn a_busy_machine_does_not_hide_a_slow_clock() {
        let slow = finding(clock(1249.0, 7823.0, Some(620.0)));
        assert_eq!(slow.severity, Severity::Critical);
        assert!(slow.summary.contains("at least 601 ns per read"), "{}", slow.summary);
        assert_eq!(finding(clock(1249.0, 7823.0, Some(160.0))).severity, Severity::Warning);
    }

    #[test]
    fn a_busy_machine_does_not_make_a_clock_slow() {
        assert_eq!(finding(clock(1249.0, 7823.0, Some(22.0))).severity, Severity::Ok);
        assert_eq!(finding(clock(150.0, 60.0, Some(101.0))).severity, Severity::Ok, "within the noise");
        assert_eq!(finding(clock(150.0, 60.0, Some(104.0))).severity, Severity::Warning);
    }

    #[test]
    fn without_the_undisturbed_cost_single_reads_count() {
        let at = |ns| Percentiles {
            min_ns: ns,
            p50_ns: ns,
            p90_ns: ns,
            p99_ns: ns,
            p99_9_ns: ns,
            p99_99_ns: ns,
            p99_999_ns: ns,
            max_ns: ns,
        };
        let with = |ns| ClockReport { percentiles: Some(at(ns)), ..clock(1249.0, 7823.0, None) };
        assert_eq!(finding(with(620.0)).severity, Severity::Critical);
        assert_eq!(finding(with(22.0)).severity, Severity::Ok);
        assert_eq!(finding(clock(1249.0, 7823.0, None)).severity, Severity::Ok, "nothing shows the clock's own cost");
    }
}
