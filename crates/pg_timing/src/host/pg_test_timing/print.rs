//! pg_test_timing's output formats.

use super::json::SCHEMA_VERSION;
use super::timing::Timing;
use super::{Format, Options};
use crate::host::measure::log2_row;
use crate::report::{ObservedDuration, TestReport, TestedClock, TscSummary};
use std::fmt::Write;

/// PostgreSQL 19 lists only durations below this many ns, and the longest one.
const LISTED_NS: u64 = 10_000;

/// Returns PostgreSQL 19's format: nanoseconds, one row per power of two, then each duration up to the cutoff. The
/// clock's title is printed before it is measured.
pub fn nineteen(timing: &Timing, cutoff: f64) -> String {
    let mut out = String::new();
    _ = writeln!(out, "Average loop time including overhead: {:.2} ns", timing.loop_ns);
    let total: u64 = timing.observed.values().sum();
    out.push_str("Histogram of timing durations:\n");
    let head = |out: &mut String, unit: &str| {
        _ = writeln!(out, "{unit:>19}   {:>10} {:>10} {:>10}", "% of total", "running %", "count");
    };
    let row = |out: &mut String, value: u64, running: u64, count: u64| {
        let percent = |n: u64| n as f64 * 100.0 / total.max(1) as f64;
        _ = writeln!(out, "{value:>19}   {:>10.4} {:>10.4} {count:>10}", percent(count), percent(running));
    };
    head(&mut out, "<= ns");
    let mut running = 0;
    for (nth, count) in rows(timing).into_iter().enumerate() {
        running += count;
        row(&mut out, (1u64 << nth) - 1, running, count);
    }
    _ = writeln!(out, "\nObserved timing durations up to {cutoff:.4}%:");
    head(&mut out, "ns");
    running = 0;
    let mut last = None;
    for (&ns, &count) in timing.observed.range(..LISTED_NS) {
        running += count;
        row(&mut out, ns, running, count);
        last = Some(ns);
        // With a cutoff that is not a number, all are listed.
        if running as f64 * 100.0 >= cutoff * total as f64 {
            break;
        }
    }
    if let Some((&largest, &count)) = timing.observed.last_key_value().filter(|(ns, _)| Some(**ns) != last) {
        out.push_str("...\n");
        row(&mut out, largest, total, count);
    }
    out
}

/// Returns the format of PostgreSQL 15 to 18. The observed differences are microseconds.
pub fn classic(timing: &Timing) -> String {
    let mut out = format!("Per loop time including overhead: {:.2} ns\n", timing.loop_ns);
    out.push_str("Histogram of timing durations:\n");
    _ = writeln!(out, "{:>6}   {:>10} {:>10}", "< us", "% of total", "count");
    let total: u64 = timing.observed.values().sum();
    for (nth, count) in rows(timing).into_iter().enumerate() {
        let percent = count as f64 * 100.0 / total.max(1) as f64;
        _ = writeln!(out, "{:>6}   {percent:>10.5} {count:>10}", 1u64 << nth);
    }
    out
}

/// Returns counts by power of two, up to the last one that is not 0.
fn rows(timing: &Timing) -> Vec<u64> {
    let mut rows = Vec::new();
    for (&difference, &count) in &timing.observed {
        let row = log2_row(difference);
        rows.resize(rows.len().max(row + 1), 0);
        rows[row] += count;
    }
    rows
}

/// Returns everything as JSON.
pub fn json(options: &Options, timings: &[Timing], tsc: Option<&TscSummary>, interrupted: bool) -> String {
    debug_assert_eq!(options.format, Format::Json);
    let clock = |timing: &Timing| TestedClock {
        name: name(timing.title),
        loop_ns: (timing.loop_ns * 100.0).round() / 100.0,
        reads: timing.observed.values().sum(),
        observed: timing.observed.iter().map(|(&ns, &count)| ObservedDuration { ns, count }).collect(),
    };
    let report = TestReport {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        duration_s: options.duration_s.into(),
        interrupted,
        clocks: timings.iter().map(clock).collect(),
        tsc: tsc.cloned(),
    };
    serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n"
}

/// Returns the short name of a clock.
fn name(title: &str) -> String {
    match title {
        super::timing::SYSTEM => "system".into(),
        other => other.rsplit(' ').next().unwrap_or_default().to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        let observed = [(0, 1), (24, 70), (25, 28), (31, 10), (1024, 1), (70_000, 1)].into();
        Timing { title: super::super::timing::SYSTEM, loop_ns: 25.016, observed }
    }

    #[test]
    fn the_format_is_that_of_postgresql_19() {
        insta::assert_snapshot!(nineteen(&timing(), 90.0));
    }

    #[test]
    fn durations_from_10_us_are_not_listed_except_the_longest() {
        let mut timing = timing();
        timing.observed.extend([(9_999, 1), (10_000, 1)]);
        for cutoff in [100.0, f64::NAN] {
            let text = nineteen(&timing, cutoff);
            let end = "               9999       0.8850    98.2301          1\n...\n              \
                       70000       0.8850   100.0000          1\n";
            assert!(text.ends_with(end) && text.matches("...").count() == 1, "{text}");
        }
        assert!(nineteen(&timing, f64::NAN).contains("Observed timing durations up to NaN%:\n"));
    }

    #[test]
    fn a_cutoff_of_100_lists_all_durations_below_10_us() {
        let mut timing = timing();
        timing.observed.remove(&70_000);
        let text = nineteen(&timing, 100.0);
        assert!(!text.contains("...") && text.ends_with(" 1024       0.9091   100.0000          1\n"), "{text}");
    }

    #[test]
    fn the_classic_format_is_that_of_postgresql_18() {
        let observed = [(0, 970), (1, 25), (2, 3), (70, 1), (4_000, 1)].into();
        insta::assert_snapshot!(classic(&Timing { observed, ..timing() }));
    }
}
