//! Converts an output of pg_test_timing to a report, so that the same checks apply.
//!
//! A complete table shows figures indirectly: the clock's step, and the time that interruptions took.

use super::table::{Bin, ClockTable, Output, TscLines};
use crate::host::measure::{GAP_FACTOR, MIN_GAP};
use crate::human::count;
use crate::report::{self, ClockReport, Fact, Gaps, INTERRUPTED_SHARE, Origin, Percentiles, Report};
use crate::report::{SYSTEM, TscReport};

/// Returns the report. Facts that the output does not contain are unknown.
pub fn report(output: &Output) -> Report {
    let mut report = Report::empty(Origin::PgTestTiming, "not in the output of pg_test_timing");
    report.measured_seconds = output.duration_s.unwrap_or(0) as f64;
    report.clocks = output.clocks.iter().map(|table| clock(table, output)).collect();
    if output.went_back {
        add_backward_step(&mut report, output.warp_ns.unwrap_or(0).unsigned_abs() as f64);
    }
    report.missing = missing(output);
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
    let figures = Figures::of(table, output.duration_s).filter(|_| !output.cut_off);
    let gaps = figures.as_ref().and_then(Figures::gaps);
    let heavy = gaps.filter(|gaps| gaps.share > INTERRUPTED_SHARE);
    ClockReport {
        name: table.name.clone(),
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

fn bin(row: &Bin, unit_ns: f64) -> report::Bin {
    // If readings were cut, the rows overlap.
    let ge_ns = (unit_ns > 1.0).then_some(row.from_ns as u64);
    report::Bin { le_ns: row.below_ns as u64 - 1, ge_ns, count: row.count }
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
    let why = match lines.not_usable {
        true => "PostgreSQL 19 could not use the TSC",
        false => "not in the output of pg_test_timing",
    };
    TscReport {
        frequency_khz: Fact::of(lines.in_use_khz.filter(|khz| *khz > 0).map(|khz| khz as f64), why),
        source: lines.source.clone().or_else(|| lines.in_use_khz.map(|_| "PostgreSQL 19".into())),
        usable: lines.not_usable.then_some(false),
        used_by_default: lines.used_by_default,
        calibrated_khz: lines.calibrated_khz.filter(|khz| *khz > 0).map(|khz| khz as f64),
        distrust: lines.not_usable.then(|| why.to_string()).into_iter().collect(),
        ..TscReport::unavailable(why)
    }
}

/// The table of one clock, if it is complete.
pub struct Figures<'a> {
    table: &'a ClockTable,
    reads: f64,
    elapsed_ns: f64,
}

/// A run can end up to one interruption later than requested, and its loop time has two decimals. If the elapsed time
/// is shorter, or differs more from the sum of the differences, a number is damaged.
const ELAPSED_TOLERANCE: f64 = 0.05;

/// If the bounds of a mean differ by more, its row is too wide for a figure.
const NARROW: f64 = 0.10;

impl Figures<'_> {
    /// Returns `None` if rows are missing, or if loop time, counts and duration do not fit together. Then a missing row
    /// could look like a missing duration.
    pub fn of(table: &ClockTable, duration_s: Option<u64>) -> Option<Figures<'_>> {
        let bounds = (0..table.bins.len()).map(|nth| table.unit_ns * 2f64.powi(nth as i32));
        let complete = table.bins.iter().map(|bin| bin.below_ns).eq(bounds);
        let reads: f64 = table.bins.iter().map(|bin| bin.count as f64).sum();
        let elapsed_ns = table.loop_ns? * reads;
        let figures = Figures { table, reads, elapsed_ns };
        let within = |low: f64, high: f64| {
            elapsed_ns >= (1.0 - ELAPSED_TOLERANCE) * low && elapsed_ns <= (1.0 + ELAPSED_TOLERANCE) * high
        };
        // A pause of the machine makes a run longer.
        let ended_in_time = duration_s.map(|seconds| seconds as f64 * 1e9).is_none_or(|ns| within(ns, f64::INFINITY));
        let (low, high) = figures.time_ns(&table.bins);
        (complete && elapsed_ns > 0.0 && ended_in_time && within(low, high)).then_some(figures)
    }

    /// Returns bounds of the clock's step. `None` if the clock did not move.
    ///
    /// Every difference is a multiple of the step. So the smallest one above zero is an upper bound. If most readings
    /// equal their predecessor, a read takes less than a step, and the smallest difference is the step itself.
    pub fn step_between_ns(&self) -> Option<(f64, f64)> {
        let [zero, rest @ ..] = self.table.bins.as_slice() else { return None };
        let smallest = rest.iter().find(|bin| bin.count > 0)?;
        let exact = self.smallest_listed(self.reads - zero.count as f64);
        let is_seen = zero.count as f64 > self.reads / 2.0;
        let (low, high) = exact.map_or((smallest.from_ns, smallest.below_ns), |ns| (ns, ns));
        Some((if is_seen { low } else { 0.0 }, high))
    }

    /// Returns the smallest listed duration above 0, unless a shorter one may be missing from the list.
    fn smallest_listed(&self, above_zero: f64) -> Option<f64> {
        let listed = &self.table.observed;
        let nth = listed.iter().position(|seen| seen.ns > 0)?;
        // Durations are missing only before the last one.
        (nth + 1 < listed.len() || listed[nth].count as f64 == above_zero).then_some(listed[nth].ns as f64)
    }

    /// Returns the interruptions: differences far above the median. Their times are lower bounds.
    pub fn gaps(&self) -> Option<Gaps> {
        let mut running = 0.0;
        let median = self.table.bins.iter().find(|bin| {
            running += bin.count as f64;
            running >= self.reads / 2.0
        })?;
        let threshold_ns = (GAP_FACTOR * median.below_ns).max(MIN_GAP.0);
        // The steps of a coarse clock are not interruptions.
        if self.step_between_ns().is_none_or(|(low, _)| low >= threshold_ns) {
            return None;
        }
        let (short, long) = self.split(threshold_ns);
        let by_long_rows: f64 = long.iter().map(|bin| bin.count as f64 * self.table.differences_ns(bin).0).sum();
        let total_ns = by_long_rows.max(self.elapsed_ns - self.time_ns(short).1).clamp(0.0, self.elapsed_ns);
        let count = long.iter().map(|bin| bin.count).fold(0, u64::saturating_add);
        let largest = long.iter().rev().find(|bin| bin.count > 0);
        let largest_ns = match self.table.observed.last() {
            Some(last) if last.ns as f64 >= threshold_ns => last.ns as f64,
            _ => largest.map_or(0.0, |bin| self.table.differences_ns(bin).0),
        };
        let total_ns = if count > 0 { total_ns } else { 0.0 };
        Some(Gaps { threshold_ns, count, total_ns, largest_ns, share: total_ns / self.elapsed_ns })
    }

    /// Returns the loop time without interruptions, if the rows are narrow enough to know it.
    pub fn undisturbed_ns(&self, gaps: &Gaps) -> Option<f64> {
        let (short, _) = self.split(gaps.threshold_ns);
        let count: f64 = short.iter().map(|bin| bin.count as f64).sum();
        let (low, high) = self.time_ns(short);
        (count > 0.0 && high > 0.0 && (high - low) / high <= NARROW).then_some((low + high) / 2.0 / count)
    }

    /// Splits the rows: shorter and longer durations than the threshold.
    fn split(&self, threshold_ns: f64) -> (&[Bin], &[Bin]) {
        let at = self.table.bins.partition_point(|bin| self.table.differences_ns(bin).0 < threshold_ns);
        self.table.bins.split_at(at)
    }

    /// Returns bounds of the time in these rows. The sum of cut readings is exact, because their differences add up.
    fn time_ns(&self, rows: &[Bin]) -> (f64, f64) {
        rows.iter().fold((0.0, 0.0), |(low, high), bin| {
            let (smallest, largest) = self.table.differences_ns(bin);
            let listed = self.table.observed.iter().filter(|seen| (smallest..=largest).contains(&(seen.ns as f64)));
            let (count, sum) = listed.fold((0u64, 0.0), |(count, sum), seen| {
                (count.saturating_add(seen.count), sum + seen.ns as f64 * seen.count as f64)
            });
            // Durations that are not listed have the row's bounds.
            let rest = bin.count.saturating_sub(count) as f64;
            (low + sum + rest * smallest, high + sum + rest * largest)
        })
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

    macro_rules! output {
        ($file:literal) => {
            parse(include_str!(concat!("../../../tests/fixtures/pg_test_timing/", $file))).unwrap().remove(0)
        };
    }

    fn figures(output: &Output) -> Figures<'_> {
        Figures::of(&output.clocks[0], output.duration_s).unwrap()
    }

    #[test]
    fn the_step_of_a_coarse_clock_is_bounded() {
        assert_eq!(figures(&output!("pg15-coarse.txt")).step_between_ns(), Some((2_047_000.0, 4_096_000.0)));
        assert_eq!(figures(&output!("pg19-coarse.txt")).step_between_ns(), Some((2_097_152.0, 4_194_304.0)));
    }

    #[test]
    fn the_step_of_a_fine_clock_has_an_upper_bound() {
        let fine = output!("pg19.txt");
        let smallest = fine.clocks[0].observed[0].ns as f64;
        assert_eq!(figures(&fine).step_between_ns(), Some((0.0, smallest)));
        assert_eq!(figures(&output!("pg15.txt")).step_between_ns(), Some((0.0, 2000.0)), "cut readings hide it");
        assert_eq!(figures(&output!("docker-mac-hpet.txt")).step_between_ns(), Some((0.0, 8000.0)));
    }

    #[test]
    fn interruptions_are_counted_without_the_steps_of_a_coarse_clock() {
        assert_eq!(figures(&output!("pg15-coarse.txt")).gaps(), None);
        assert_eq!(figures(&output!("pg19-coarse.txt")).gaps(), None);
        for quiet in
            [output!("pg15.txt"), output!("pg19.txt"), output!("i7-860-tsc.txt"), output!("docker-mac-hpet.txt")]
        {
            let gaps = figures(&quiet).gaps().unwrap();
            assert!(gaps.share < 0.02, "{gaps:?}");
        }
    }

    /// Every 1000th read takes 1 ms. All others take 0.2 us.
    #[test]
    fn heavy_interruptions_and_the_loop_time_without_them() {
        for busy in [output!("pg15-busy.txt"), output!("pg19-busy.txt")] {
            let figures = figures(&busy);
            let gaps = figures.gaps().unwrap();
            assert!((0.80..0.95).contains(&gaps.share), "{gaps:?}");
            let undisturbed = figures.undisturbed_ns(&gaps).unwrap();
            assert!((190.0..210.0).contains(&undisturbed), "{undisturbed}");
        }
    }

    #[test]
    fn damaged_tables_have_no_figures() {
        let complete = output!("pg15.txt");
        let of = |change: &dyn Fn(&mut ClockTable)| {
            let mut table = complete.clocks[0].clone();
            change(&mut table);
            Figures::of(&table, complete.duration_s).is_some()
        };
        assert!(of(&|_| {}));
        assert!(!of(&|table| _ = table.bins.remove(1)), "a row is missing");
        assert!(!of(&|table| _ = table.bins.remove(0)));
        assert!(!of(&|table| table.bins[0].count /= 10), "a digit is missing");
        assert!(!of(&|table| table.loop_ns = None));
        assert!(!of(&|table| table.loop_ns = Some(257.0)));
        assert!(!of(&|table| table.bins.clear()));
        let without_duration = ClockTable { loop_ns: Some(257.0), ..complete.clocks[0].clone() };
        assert!(Figures::of(&without_duration, None).is_none(), "the differences add up to another time");
        let mut huge = output!("pg19.txt");
        huge.clocks[0].observed[0].count = u64::MAX;
        huge.clocks[0].bins[5].count = u64::MAX;
        assert!(Figures::of(&huge.clocks[0], None).is_none());
    }
}
