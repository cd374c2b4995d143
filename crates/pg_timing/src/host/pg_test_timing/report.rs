//! Converts an output of pg_test_timing to a report, so that the same checks apply.

use super::figures::Figures;
use super::{ClockKind, ClockTable, Output, TscLines};
use crate::human::count;
use crate::report::{Bin, ClockReport, Fact, INTERRUPTED_SHARE, Origin, Percentiles, Report, SYSTEM, TscReport};

/// Returns the report. Facts that the output does not contain are unknown.
pub fn report(output: &Output) -> Report {
    let mut report = Report::empty(Origin::PgTestTiming, "not in the output of pg_test_timing");
    report.measured_seconds = output.duration_s.unwrap_or(0) as f64;
    report.clocks = output.clocks.iter().map(|table| clock(table, output)).collect();
    if output.went_back {
        add_backward_step(&mut report, output.warp_ns.unwrap_or(0).unsigned_abs() as f64);
    }
    report.missing = missing(output);
    report.excerpt = report.missing.is_some();
    if let Some(lines) = &output.tsc {
        report.tsc = tsc(lines);
    }
    report
}

/// Returns what is wrong with the output as a text, so that it cannot prove that a host is good.
fn missing(output: &Output) -> Option<String> {
    if let Some(contradiction) = output.clocks.iter().find_map(|table| contradiction(table, output)) {
        return Some(contradiction);
    }
    output.cut_off.then(|| "lines or rows of the output are missing or damaged".into())
}

/// On a busy machine the readings take less time than the test: a run of ours took 86%.
const LEAST_SHARE: f64 = 0.5;

/// Returns how the figures of a clock contradict each other: all rows are there, and their readings take less time than the
/// test.
fn contradiction(table: &ClockTable, output: &Output) -> Option<String> {
    let reads: f64 = table.bins.iter().map(|bin| bin.count as f64).sum();
    let (loop_ns, test_s) = (table.loop_ns.filter(|ns| table.whole && *ns > 0.0)?, output.duration_s?);
    let taken_s = loop_ns * reads / 1e9;
    (taken_s < LEAST_SHARE * test_s as f64).then(|| {
        format!(
            "the figures contradict each other: {} readings of {loop_ns} ns take {taken_s:.2} s, but the test took {test_s} s. \
             This is not an output of pg_test_timing",
            count(reads as u64)
        )
    })
}

/// Adds a backward step to the last clock. It ends the run, so it belongs to the clock that was being read.
fn add_backward_step(report: &mut Report, ns: f64) {
    if report.clocks.is_empty() {
        report.clocks.push(ClockReport { name: SYSTEM.into(), ..ClockReport::default() });
    }
    if let Some(clock) = report.clocks.last_mut() {
        clock.backward_steps = 1;
        clock.largest_backward_ns = ns;
    }
}

/// Returns the report of one clock.
fn clock(table: &ClockTable, output: &Output) -> ClockReport {
    let name = match &table.kind {
        ClockKind::System => SYSTEM.to_string(),
        ClockKind::Rdtscp => "rdtscp".into(),
        ClockKind::Rdtsc => "rdtsc".into(),
        ClockKind::Other(name) => name.to_ascii_lowercase(),
    };
    let figures = Figures::of(table, output.duration_s).filter(|_| !output.cut_off);
    let gaps = figures.as_ref().and_then(Figures::gaps);
    let heavy = gaps.filter(|gaps| gaps.share > INTERRUPTED_SHARE);
    ClockReport {
        name,
        // A loop time of zero is not a measurement.
        loop_ns: table.loop_ns.filter(|ns| *ns > 0.0 && contradiction(table, output).is_none()),
        undisturbed_ns: figures.as_ref().zip(heavy).and_then(|(figures, gaps)| figures.undisturbed_ns(&gaps)),
        granularity_between_ns: figures.as_ref().and_then(Figures::step_between_ns),
        gaps,
        reads: table.bins.iter().map(|bin| bin.count).fold(0, u64::saturating_add),
        histogram: table.bins.iter().map(|row| bin(row, table.unit_ns)).collect(),
        percentiles: percentiles(table),
        ..ClockReport::default()
    }
}

fn bin(row: &super::Bin, unit_ns: f64) -> Bin {
    // If readings were cut, the rows overlap.
    let ge_ns = (unit_ns > 1.0).then_some(row.from_ns as u64);
    Bin { le_ns: row.below_ns as u64 - 1, ge_ns, count: row.count }
}

/// Returns the percentiles, if the list of exact durations reaches the default cutoff of 99.99%.
fn percentiles(table: &ClockTable) -> Option<Percentiles> {
    let total: u64 = table.bins.iter().map(|bin| bin.count).fold(0, u64::saturating_add);
    let at = |share: f64| {
        let mut running = 0u64;
        table.observed.iter().find_map(|seen| {
            running = running.saturating_add(seen.count);
            (running as f64 >= share * total as f64).then_some(seen.ns as f64)
        })
    };
    let max = table.observed.last()?.ns as f64;
    Some(Percentiles {
        min_ns: table.observed.first()?.ns as f64,
        p50_ns: at(0.5)?,
        p90_ns: at(0.9)?,
        p99_ns: at(0.99)?,
        p99_9_ns: at(0.999)?,
        p99_99_ns: at(0.9999)?,
        p99_999_ns: at(0.99999).unwrap_or(max),
        max_ns: max,
    })
}

/// Returns the report about the counter.
fn tsc(lines: &TscLines) -> TscReport {
    let why = match (lines.not_usable, lines.not_converged) {
        (true, _) => "PostgreSQL 19 could not use the TSC",
        (_, true) => "PostgreSQL 19's calibration did not converge",
        _ => "not in the output of pg_test_timing",
    };
    TscReport {
        frequency_khz: lines
            .in_use_khz
            .filter(|khz| *khz > 0)
            .map_or_else(|| Fact::unavailable(why), |khz| Fact::Known(khz as f64)),
        source: lines.source.clone().or_else(|| lines.in_use_khz.map(|_| "PostgreSQL 19".into())),
        usable: lines.not_usable.then_some(false),
        used_by_default: lines.used_by_default,
        calibrated_khz: lines.calibrated_khz.filter(|khz| *khz > 0).map(|khz| khz as f64),
        distrust: lines.not_usable.then(|| why.to_string()).into_iter().collect(),
        ..TscReport::unavailable(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::pg_test_timing::parse;
    use crate::report::Severity;

    fn read(text: &str) -> Report {
        let mut report = report(&parse(text).unwrap()[0]);
        crate::host::check::judge(&mut report);
        report
    }

    const SYSTEM_CLOCK: &str = "Testing timing overhead for 1 second.\n\n\
        System clock source: clock_gettime (CLOCK_MONOTONIC)\nAverage loop time including overhead: 20.00 ns\n\
        Histogram of timing durations:\n              <= ns   % of total  running %      count\n\
        \x20                31     100.0000   100.0000      40000\n\n";

    #[test]
    fn a_backward_step_belongs_to_the_clock_that_was_being_read() {
        let back = "Clock source: RDTSCP\nDetected clock going backwards in time.\nTime warp: -5 ns\n";
        let report = read(&format!("{SYSTEM_CLOCK}{back}"));
        let steps: Vec<_> = report.clocks.iter().map(|c| (c.name.as_str(), c.backward_steps)).collect();
        assert_eq!(steps, [("system", 0), ("rdtscp", 1)]);
        assert_eq!(report.verdict.severity, Severity::Critical);
        assert!(report.verdict.summary.contains("clock rdtscp"), "{}", report.verdict.summary);
    }

    #[test]
    fn a_wrong_frequency_in_use_is_critical() {
        let lines = "TSC frequency in use: 7 kHz\nTSC frequency from calibration: 2500000 kHz\n";
        let report = read(&format!("{SYSTEM_CLOCK}{lines}"));
        let finding = report.findings.iter().find(|f| f.id == "tsc-rate-mismatch").unwrap();
        assert_eq!(finding.severity, Severity::Critical);
        assert!(
            finding.summary.contains("7 kHz according to PostgreSQL 19's frequency in use")
                && finding.summary.contains("the measured rate is 2500000 kHz"),
            "{finding:?}"
        );
    }

    #[test]
    fn figures_of_zero_are_unknown() {
        let none = read(&SYSTEM_CLOCK.replace("20.00 ns", "0.00 ns"));
        assert_eq!(none.verdict.severity, Severity::Unknown);
        let zero =
            read(&format!("{SYSTEM_CLOCK}TSC frequency in use: 0 kHz\nTSC frequency from calibration: 2500000 kHz\n"));
        assert!(zero.tsc.frequency_khz.known().is_none());
    }
}
