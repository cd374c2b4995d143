//! Converts an output of pg_test_timing to a report, so that the same checks apply.
//!
//! A complete table shows figures indirectly: the clock's step, and the time that interruptions took. The text around an
//! output can show facts about its host: clock sources, and lines of the kernel log.

use super::parse::{ClockTable, Output, unquote};
use crate::host::measure::{GAP_FACTOR, MIN_GAP};
use crate::host::{facts::is_name, kernel_log, survey};
use crate::human::count;
use crate::report::{Bin, ClockReport, Fact, Gaps, INTERRUPTED_SHARE, Origin, Percentiles, Report, SYSTEM, traits_of};

/// Returns the report. Facts that the output does not contain are unknown.
pub fn report(output: &Output) -> Report {
    let mut report = Report::empty(Origin::PgTestTiming, "not in the output of pg_test_timing");
    report.measured_seconds = output.duration_s.unwrap_or(0) as f64;
    report.clocks = output.clocks.iter().map(|table| clock(table, output)).collect();
    if output.went_back {
        // A backward step ends the run, so it belongs to the clock that was being read.
        let last = report.clocks.pop().unwrap_or(ClockReport { name: SYSTEM.into(), ..ClockReport::default() });
        let largest_backward_ns = output.warp_ns.unwrap_or(0).unsigned_abs() as f64;
        report.clocks.push(ClockReport { backward_steps: 1, largest_backward_ns, ..last });
    }
    // What is wrong with the output as a text, so that it cannot prove that a host is good.
    let contradiction = output.clocks.iter().find_map(|table| contradiction(table, output));
    let cut_off = || output.cut_off.then(|| "lines or rows of the output are missing or damaged".into());
    report.missing = contradiction.or_else(cut_off);
    report.tsc = output.tsc.clone().unwrap_or(report.tsc);
    report
}

/// On a busy machine the readings take less time than the test: a run of ours took 86%.
const LEAST_SHARE: f64 = 0.5;

/// Returns how the figures of a clock contradict each other: the rows cannot take as long as the loop time says, so those of long
/// interruptions are missing; or all rows are there, and their readings take less time than the test.
fn contradiction(table: &ClockTable, output: &Output) -> Option<String> {
    let reads = table.reads();
    let loop_ns = table.loop_ns.filter(|ns| *ns > 0.0)?;
    let elapsed_ns = loop_ns * reads as f64;
    let (_, most_ns) = Figures { table, reads: reads as f64, elapsed_ns }.time_ns(&table.bins);
    let is_cut = !table.whole && !table.bins.is_empty();
    if is_cut && elapsed_ns >= (1.0 + ELAPSED_TOLERANCE) * most_ns {
        return Some("rows are missing, so interruptions may be a large part of the loop time".into());
    }
    let test_s = output.duration_s.filter(|_| table.whole)?;
    let (taken_s, reads) = (elapsed_ns / 1e9, count(reads));
    (taken_s < LEAST_SHARE * test_s as f64).then(|| {
        format!("the figures contradict each other: {reads} readings of {loop_ns} ns take {taken_s:.2} s, but the test took {test_s} s")
    })
}

/// Returns the report of one clock.
fn clock(table: &ClockTable, output: &Output) -> ClockReport {
    let figures = Figures::of(table, output.duration_s).filter(|_| !output.cut_off || table.whole);
    let gaps = figures.as_ref().and_then(Figures::gaps);
    let heavy = gaps.filter(|gaps| gaps.share > INTERRUPTED_SHARE);
    ClockReport {
        name: table.name.clone(),
        // A loop time of zero is not a measurement.
        loop_ns: table.loop_ns.filter(|ns| *ns > 0.0 && contradiction(table, output).is_none()),
        undisturbed_ns: figures.as_ref().zip(heavy).and_then(|(figures, gaps)| figures.undisturbed_ns(&gaps)),
        granularity_between_ns: figures.as_ref().and_then(Figures::step_between_ns),
        gaps,
        reads: table.reads(),
        histogram: table.bins.clone(),
        percentiles: percentiles(table),
        ..ClockReport::default()
    }
}

/// Returns the percentiles, if the list of exact durations reaches the default cutoff of 99.99%. The longest duration is always
/// in the list.
fn percentiles(table: &ClockTable) -> Option<Percentiles> {
    let total = table.reads() as f64;
    Percentiles::of(|share| {
        let mut running = 0u64;
        let reached = table.observed.iter().find(|seen| {
            running = running.saturating_add(seen.count);
            running as f64 >= share * total
        });
        reached.or(table.observed.last().filter(|_| share > 0.9999)).map(|seen| seen.ns as f64)
    })
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
    /// Returns `None` if loop time, counts and duration do not fit together.
    pub fn of(table: &ClockTable, duration_s: Option<u64>) -> Option<Figures<'_>> {
        let reads: f64 = table.bins.iter().map(|bin| bin.count as f64).sum();
        let elapsed_ns = table.loop_ns? * reads;
        let figures = Figures { table, reads, elapsed_ns };
        let (least, most) = (1.0 - ELAPSED_TOLERANCE, 1.0 + ELAPSED_TOLERANCE);
        let within = |low: f64, high: f64| (least * low..=most * high).contains(&elapsed_ns);
        // A pause of the machine makes a run longer.
        let ended_in_time = duration_s.map(|seconds| seconds as f64 * 1e9).is_none_or(|ns| within(ns, f64::INFINITY));
        let (low, high) = figures.time_ns(&table.bins);
        (elapsed_ns > 0.0 && ended_in_time && within(low, high)).then_some(figures)
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
        let least = smallest.ge_ns.map_or(self.table.differences_ns(smallest).0, |ns| ns as f64);
        let (low, high) = exact.map_or((least, smallest.le_ns as f64 + 1.0), |ns| (ns, ns));
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
        let threshold_ns = (GAP_FACTOR * (median.le_ns as f64 + 1.0)).max(MIN_GAP.0);
        // The steps of a coarse clock are not interruptions.
        if self.step_between_ns().is_none_or(|(low, _)| low >= threshold_ns) {
            return None;
        }
        let (short, long) = self.split(threshold_ns);
        let least_ns = |bin: &Bin| self.table.differences_ns(bin).0;
        let count = long.iter().map(|bin| bin.count).fold(0, u64::saturating_add);
        let Some(largest) = long.iter().rev().find(|bin| bin.count > 0) else {
            return Some(Gaps { threshold_ns, count: 0, total_ns: 0.0, largest_ns: 0.0, share: 0.0 });
        };
        let by_long_rows: f64 = long.iter().map(|bin| bin.count as f64 * least_ns(bin)).sum();
        let total_ns = by_long_rows.max(self.elapsed_ns - self.time_ns(short).1).clamp(0.0, self.elapsed_ns);
        let listed = self.table.observed.last().map(|last| last.ns as f64).filter(|ns| *ns >= threshold_ns);
        let largest_ns = listed.unwrap_or_else(|| least_ns(largest));
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
            let count = listed.clone().map(|seen| seen.count).fold(0, u64::saturating_add);
            let sum: f64 = listed.map(|seen| seen.ns as f64 * seen.count as f64).sum();
            // Durations that are not listed have the row's bounds.
            let rest = bin.count.saturating_sub(count) as f64;
            (low + sum + rest * smallest, high + sum + rest * largest)
        })
    }
}

/// Completes the reports of the outputs in a text, in their order.
pub fn complete(text: &str, outputs: &[Output], reports: &mut [Report]) {
    let log = kernel_log::parse(text);
    let kernel = survey::kernel_report(&log);
    let stated = clock_sources(text);
    for (output, report) in outputs.iter().zip(&mut *reports) {
        // Among several outputs, a clock source belongs to those after it.
        let before = |stated: &&Stated| outputs.len() == 1 || stated.position < output.position;
        for Stated { is_current, names, .. } in stated.iter().filter(before) {
            match is_current {
                true => report.clocksource.current = Fact::Known(names[0].into()),
                false => report.clocksource.available = Fact::Known(names.iter().map(ToString::to_string).collect()),
            }
        }
        if kernel.recognized_lines > 0 {
            survey::complete(&log, &mut report.host, &mut report.clocksource);
            report.kernel = Fact::Known(kernel.clone());
        }
        if let Some(names) = report.clocksource.names() {
            report.tsc.independent = Some(!names.uses_counter());
            report.tsc.accepted_by_kernel = Some(names.accepts_counter());
        }
    }
}

/// The current clock source, or the available ones, in a line of a text.
struct Stated<'a> {
    position: usize,
    is_current: bool,
    names: Vec<&'a str>,
}

/// Returns the clock sources in the text. They are from the output of cat and grep, and from what echo wrote. A line of several
/// names lists the available ones.
fn clock_sources(text: &str) -> Vec<Stated<'_>> {
    let mut stated = Vec::new();
    // Whether the last file that the text names is that of the available ones.
    let mut of_available: Option<bool> = None;
    for line in text.lines() {
        let position = line.as_ptr().addr() - text.as_ptr().addr();
        let body = unquote(line);
        if let Some(at) = body.rfind("_clocksource") {
            of_available = Some(body[..at].ends_with("available"));
        }
        let echoed = body.split_once("echo ").filter(|_| body.contains("current_clocksource"));
        let echoed = echoed.and_then(|(_, rest)| names(rest.split_whitespace().next()?.trim_matches(['"', '\''])));
        let value = body.rsplit_once("_clocksource:").map_or(body, |(_, value)| value);
        if let Some(names) = echoed.or_else(|| names(value).filter(|_| of_available.is_some())) {
            let is_current = names.len() == 1 && of_available != Some(true);
            stated.push(Stated { position, is_current, names });
        }
    }
    stated
}

/// Returns the words, if all can be names of clock sources, and one of them is known.
fn names(text: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = text.split_whitespace().collect();
    let is_list = names.iter().all(|name| is_name(name) && !name.contains('.'));
    (is_list && names.iter().any(|name| traits_of(name).is_some())).then_some(names)
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
    fn figures_that_do_not_fit_together_are_unknown() {
        let complete = output!("pg15.txt");
        let of = |loop_ns, duration_s| {
            let table = ClockTable { loop_ns, ..complete.clocks[0].clone() };
            Figures::of(&table, duration_s).is_some()
        };
        assert!(of(complete.clocks[0].loop_ns, complete.duration_s));
        assert!(!of(None, complete.duration_s) && !of(Some(257.0), complete.duration_s));
        assert!(!of(Some(257.0), None), "the differences add up to another time");
        let mut huge = output!("pg19.txt");
        huge.clocks[0].observed[0].count = u64::MAX;
        huge.clocks[0].bins[5].count = u64::MAX;
        assert!(Figures::of(&huge.clocks[0], None).is_none());
    }

    fn found(text: &str) -> Vec<(bool, Vec<&str>)> {
        clock_sources(text).into_iter().map(|stated| (stated.is_current, stated.names)).collect()
    }

    #[test]
    fn clock_sources_are_found() {
        const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
        let both = vec![(false, vec!["hpet", "acpi_pm"]), (true, vec!["hpet"])];
        for text in [
            format!("$ cat {DIR}/available_clocksource\nhpet acpi_pm \n$ cat {DIR}/current_clocksource\nhpet\n"),
            format!("> $ cat {DIR}/[ac]*_clocksource\n> hpet acpi_pm\n> hpet\n"),
            format!("$ grep . {DIR}/*\n{DIR}/available_clocksource:hpet acpi_pm\n{DIR}/current_clocksource:hpet\n"),
            format!("# cat {DIR}/available_clocksource {DIR}/current_clocksource\nhpet acpi_pm\nhpet\n"),
            format!("db-1  | $ cat {DIR}/[ac]*_clocksource\ndb-1  | hpet acpi_pm\ndb-1  | hpet\n"),
        ] {
            assert_eq!(found(&text), both, "{text}");
        }
        assert_eq!(found(&format!("$ cat {DIR}/available_clocksource\nhpet\n")), [(false, vec!["hpet"])]);
        assert_eq!(found(&format!("# echo acpi_pm > {DIR}/current_clocksource\n")), [(true, vec!["acpi_pm"])]);
        assert_eq!(found("I looked at current_clocksource, and it is fine.\nThen I ran\n"), []);
    }
}
