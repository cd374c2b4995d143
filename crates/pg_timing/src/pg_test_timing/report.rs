//! From a pg_test_timing output to a report, so that the same checks judge it.

use super::{ClockKind, ClockTable, Output, TscLines};
use crate::check;
use crate::report::{Bin, ClockReport, Fact, Origin, Percentiles, Report, SYSTEM, TscReport};

/// Everything that can be told from the output; the rest is unknown.
pub fn report(output: &Output) -> Report {
    let mut report = Report::empty(Origin::PgTestTiming, "a pg_test_timing output does not tell");
    report.measured_seconds = output.duration_s.unwrap_or(0) as f64;
    report.clocks = output.clocks.iter().map(clock).collect();
    if output.went_back {
        went_back(&mut report, output.warp_ns.unwrap_or(0).unsigned_abs() as f64);
    }
    report.excerpt = output.cut_off;
    if let Some(lines) = &output.tsc {
        report.tsc = tsc(lines);
    }
    check::judge(&mut report);
    report
}

/// A warp ends the run: it belongs to the clock that was being read, the last one named.
fn went_back(report: &mut Report, ns: f64) {
    if report.clocks.is_empty() {
        report.clocks.push(ClockReport { name: SYSTEM.into(), ..ClockReport::default() });
    }
    if let Some(clock) = report.clocks.last_mut() {
        clock.backward_steps = 1;
        clock.largest_backward_ns = ns;
    }
}

fn clock(table: &ClockTable) -> ClockReport {
    let name = match &table.kind {
        ClockKind::System => SYSTEM.to_string(),
        ClockKind::Rdtscp => "rdtscp".into(),
        ClockKind::Rdtsc => "rdtsc".into(),
        ClockKind::Other(name) => name.to_ascii_lowercase(),
    };
    ClockReport {
        name,
        loop_ns: table.loop_ns,
        reads: table.bins.iter().map(|bin| bin.count).fold(0, u64::saturating_add),
        histogram: table.bins.iter().map(|bin| Bin { le_ns: bin.below_ns as u64 - 1, count: bin.count }).collect(),
        percentiles: percentiles(table),
        ..ClockReport::default()
    }
}

/// Only from a list of single durations that goes up to the 99.99% of the default cutoff.
fn percentiles(table: &ClockTable) -> Option<Percentiles> {
    let total: u64 = table.bins.iter().map(|bin| bin.count).fold(0, u64::saturating_add);
    let at = |share: f64| {
        let mut running = 0u64;
        table.observed.iter().find_map(|seen| {
            running = running.saturating_add(seen.count);
            (running as f64 >= share * total as f64).then_some(seen.ns as f64)
        })
    };
    let most = table.observed.last()?.ns as f64;
    Some(Percentiles {
        min_ns: table.observed.first()?.ns as f64,
        p50_ns: at(0.5)?,
        p90_ns: at(0.9)?,
        p99_ns: at(0.99)?,
        p99_9_ns: at(0.999)?,
        p99_99_ns: at(0.9999)?,
        p99_999_ns: at(0.99999).unwrap_or(most),
        max_ns: most,
    })
}

fn tsc(lines: &TscLines) -> TscReport {
    let why = match (lines.not_usable, lines.not_converged) {
        (true, _) => "PostgreSQL 19 could not use the TSC",
        (_, true) => "PostgreSQL 19's calibration did not converge",
        _ => "the output does not tell",
    };
    TscReport {
        frequency_khz: lines.in_use_khz.map_or_else(|| Fact::unavailable(why), |khz| Fact::Known(khz as f64)),
        source: lines.source.clone().or_else(|| lines.in_use_khz.map(|_| "PostgreSQL 19".into())),
        usable: lines.not_usable.then_some(false),
        used_by_default: lines.used_by_default,
        calibrated_khz: lines.calibrated_khz.map(|khz| khz as f64),
        distrust: lines.not_usable.then(|| why.to_string()).into_iter().collect(),
        ..TscReport::unavailable(why)
    }
}
