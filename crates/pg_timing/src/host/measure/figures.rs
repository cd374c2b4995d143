//! Converts a record in ticks to figures in nanoseconds.

use super::{BUFFER, GAP_FACTOR, Histogram, MIN_GAP, MeasuredStep, Record};
use crate::report::{Bin, ClockReport, Gaps, Percentiles};
use timing_clock::{Granularity, Hertz};

/// If the step of a clock is more than this share of a buffer's duration, another clock times the buffer. The clock's
/// own readings would have an error of one step.
const MAX_STEP_SHARE: f64 = 0.02;

/// With fewer buffers the spread is left out, because it would depend on chance.
const MIN_BUFFERS: usize = 8;

/// Returns the figures of one clock. `rate` is the rate of its ticks. `outside` is the rate of the clock that timed the
/// buffers from outside, if it is known.
pub fn summarize(
    name: &str,
    record: &Record,
    measured_step: Option<MeasuredStep>,
    rate: Hertz,
    outside: Option<Hertz>,
) -> ClockReport {
    let ns = |ticks: u64| rate.nanos(ticks as f64).0;
    let step =
        measured_step.and_then(|measured_step| measured_step.granularity.step()).map(|ticks| rate.nanos(ticks).0);
    let own = record.buffers.quartiles().map(|q| q.map(|ticks| rate.nanos(ticks).0));
    let times_itself =
        matches!((step, own), (Some(step), Some([_, read, _])) if step <= MAX_STEP_SHARE * read * BUFFER as f64);
    let read = match times_itself {
        true => own,
        false => outside.and_then(|rate| Some(record.outside.quartiles()?.map(|ticks| rate.nanos(ticks).0))),
    };
    let undisturbed = match times_itself {
        true => record.buffers.undisturbed().map(|ticks| rate.nanos(ticks).0),
        false => outside.and_then(|rate| Some(rate.nanos(record.outside.undisturbed()?).0)),
    };
    let no_step = measured_step.and_then(|measured_step| match measured_step.granularity {
        Granularity::Unknown => Some("interruptions of the measurement hid it"),
        Granularity::NeverMoved if record.moved() => Some("the clock did not move while its step was measured"),
        _ => None,
    });
    let enough = record.buffers.len() >= MIN_BUFFERS;
    let percentiles = percentiles(&record.differences, ns);
    ClockReport {
        name: name.into(),
        read_ns: read.map(|[_, median, _]| round(median)),
        read_spread_ns: read.filter(|_| enough).map(|[low, _, high]| round((high - low) / 2.0)),
        undisturbed_ns: undisturbed.filter(|_| enough).map(round),
        // For a coarse clock the mean is right only after many steps.
        loop_ns: step
            .filter(|step| ns(record.classic.ticks) > 50.0 * step)
            .map(|_| round(ns(record.classic.ticks) / record.classic.reads as f64)),
        granularity_ns: step.map(round),
        granularity_unavailable: no_step.map(Into::into),
        stood_still_ns: measured_step
            .filter(|measured_step| {
                measured_step.granularity == Granularity::NeverMoved && record.reads() > 0 && !record.moved()
            })
            .map(|measured_step| measured_step.duration.0),
        reads: record.reads(),
        backward_steps: record.backward_steps,
        largest_backward_ns: round(ns(record.largest_backward)),
        gaps: percentiles
            .filter(|_| times_itself && record.backward_steps == 0)
            .map(|p| gaps(&record.differences, p.p50_ns, ns)),
        percentiles,
        histogram: bins(&record.differences, rate),
        ..ClockReport::default()
    }
}

/// Returns the figures that need no rate: the number of reads and of backward steps.
pub fn without_rate(name: &str, record: &Record) -> ClockReport {
    ClockReport {
        reads: record.reads(),
        backward_steps: record.backward_steps,
        ..ClockReport::unavailable(name, "its rate is unknown")
    }
}

/// Rounds to two decimals. Every measured spread was larger than 0.01 ns.
fn round(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}

/// Returns the percentiles of the differences.
fn percentiles(differences: &Histogram, ns: impl Fn(u64) -> f64) -> Option<Percentiles> {
    let at = |share| differences.quantile(share).map(|ticks| round(ns(ticks)));
    Some(Percentiles {
        min_ns: at(0.0)?,
        p50_ns: at(0.5)?,
        p90_ns: at(0.9)?,
        p99_ns: at(0.99)?,
        p99_9_ns: at(0.999)?,
        p99_99_ns: at(0.9999)?,
        p99_999_ns: at(0.99999)?,
        max_ns: at(1.0)?,
    })
}

/// Returns the number, total, maximum and share of the differences that are long enough to be gaps.
fn gaps(differences: &Histogram, median_ns: f64, ns: impl Fn(u64) -> f64) -> Gaps {
    let threshold_ns = round((GAP_FACTOR * median_ns).max(MIN_GAP.0));
    let mut gaps = Gaps { threshold_ns, count: 0, total_ns: 0.0, largest_ns: 0.0, share: 0.0 };
    let mut all_ns = 0.0;
    for (ticks, count) in differences.iter() {
        let difference_ns = ns(ticks);
        all_ns += difference_ns * count as f64;
        if difference_ns > threshold_ns {
            gaps.count += count;
            gaps.total_ns += difference_ns * count as f64;
            gaps.largest_ns = round(difference_ns);
        }
    }
    gaps.share = if all_ns > 0.0 { gaps.total_ns / all_ns } else { 0.0 };
    gaps.total_ns = round(gaps.total_ns);
    gaps
}

/// Returns the number of the row of PostgreSQL's histogram for a difference in ns. The rows are 0 ns, 1, 2-3, 4-7, 8-15
/// and so on.
pub fn log2_row(ns: u64) -> usize {
    (u64::BITS - ns.leading_zeros()) as usize
}

/// Returns the histogram with PostgreSQL's rows.
fn bins(differences: &Histogram, rate: Hertz) -> Vec<Bin> {
    let mut rows: Vec<Bin> = Vec::new();
    for (ticks, count) in differences.iter() {
        let row = log2_row(rate.nanos(ticks as f64).0 as u64);
        while rows.len() <= row {
            rows.push(Bin { le_ns: (1u64 << rows.len()).wrapping_sub(1), ge_ns: None, count: 0 });
        }
        rows[row].count += count;
    }
    rows
}

#[cfg(test)]
mod tests {
    //! Simulated clocks with known faults go through the same reading, counting and checking as real clocks.

    use super::*;
    use crate::host::check;
    use crate::host::measure::Outside;
    use crate::report::{Activity, Fact, Origin, Report, SYSTEM, Severity};
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{Granularity, NANOSECONDS, Nanos, granularity};

    const BLOCKS: u64 = 64;

    fn measured(character: Character) -> ClockReport {
        let rate = Hertz(character.hz);
        let world = World::new(11);
        let clock = SimClock::new(&world, character.clone());
        let counter = SimClock::new(&world, Character { cost_ns: 9.0, jitter_ns: 2, ..Character::default() });
        let outside = Outside { clock: &counter, cost: 9.5 };
        let mut record = Record::default();
        let mut left = BLOCKS;
        record.slice(&clock, &outside, || {
            left -= 1;
            left > 0
        });
        // The step is measured on a clock without faults, because the faults are positioned by numbers of reads.
        let faultless = Character { back: Vec::new(), stalls: Vec::new(), ..character };
        let mut left = 4000;
        let seen = granularity(&SimClock::new(&world, faultless), 4000, || {
            left -= 1;
            left > 0
        });
        summarize(
            SYSTEM,
            &record,
            Some(MeasuredStep { granularity: seen, duration: Nanos(1e6) }),
            rate,
            Some(NANOSECONDS),
        )
    }

    fn alarms(clock: ClockReport) -> Vec<(String, Severity)> {
        let mut report = Report::empty(Origin::Measured, "");
        report.clocks = vec![clock];
        report.activity = Fact::Known(Activity { steal_ms: Some(0.0), suspends: Some(0), ..Activity::default() });
        check::judge(&mut report);
        report.findings.iter().filter(|f| f.severity >= Severity::Warning).map(|f| (f.id.clone(), f.severity)).collect()
    }

    #[test]
    fn a_clock_without_faults_raises_no_alarm() {
        let clock = measured(Character::default());
        assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3, "{clock:?}");
        assert!((clock.loop_ns.unwrap() - 25.0).abs() < 0.3, "{clock:?}");
        assert_eq!((clock.granularity_ns, clock.backward_steps), (Some(1.0), 0));
        assert_eq!(
            clock.reads,
            (BLOCKS - BLOCKS / 8) * (BUFFER as u64 - 1),
            "every reading except the first of each buffer"
        );
        assert_eq!(clock.histogram.iter().map(|row| row.count).sum::<u64>(), clock.reads);
        assert_eq!(alarms(clock), []);
    }

    #[test]
    fn backward_steps_are_counted_and_measured() {
        // A read takes 25 ns, so a backward step of 26 ns shows as 1 ns.
        let step_back = |ticks| {
            let jitterless = Character { jitter_ns: 0, cost_ns: 25.0, ..Character::default() };
            measured(Character { back: vec![(5_000, ticks)], ..jitterless })
        };
        let one = step_back(26);
        assert_eq!((one.backward_steps, one.largest_backward_ns), (1, 1.0));
        assert_eq!(alarms(one), [("clock-backward".into(), Severity::Critical)]);
        let big = step_back(34_000_025);
        assert_eq!((big.backward_steps, big.largest_backward_ns), (1, 34_000_000.0));
    }

    #[test]
    fn a_backward_step_between_two_buffers_is_counted() {
        let clock =
            measured(Character { back: vec![(3 * BUFFER as u64, 10_000)], jitter_ns: 0, ..Character::default() });
        assert_eq!(clock.backward_steps, 1);
    }

    #[test]
    fn steps_from_1_ns_to_4_ms_are_measured() {
        for (step, alarm) in
            [(1, None), (10, None), (100, None), (4_000_000, Some(("clock-coarse".to_string(), Severity::Critical)))]
        {
            let clock = measured(Character { step, ..Character::default() });
            assert_eq!(clock.granularity_ns, Some(step as f64));
            // The read cost is right for a coarse clock, too, because another clock times the buffers.
            assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.5, "{step}: {clock:?}");
            assert_eq!(alarms(clock), Vec::from_iter(alarm));
        }
    }

    #[test]
    fn stalls_are_gaps_and_do_not_change_the_read_cost() {
        // One stall in the middle of each of the first seven buffers. The eighth block is the loop of pg_test_timing.
        let stalls = (0..7).map(|n| (n * BUFFER as u64 + 500, 5e6)).collect();
        let clock = measured(Character { stalls, ..Character::default() });
        let gaps = clock.gaps.unwrap();
        assert_eq!(gaps.count, 7);
        assert!((gaps.total_ns - 35e6).abs() < 1e3 && (gaps.largest_ns - 5e6).abs() < 100.0, "{gaps:?}");
        assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3);
    }

    #[test]
    fn counters_near_2_63_and_2_64_have_no_backward_step() {
        for origin in [(1 << 63) - 400_000, u64::MAX - 400_000] {
            let clock = measured(Character { origin, ..Character::default() });
            assert_eq!(clock.backward_steps, 0);
            assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3);
        }
    }

    #[test]
    fn the_read_cost_does_not_depend_on_the_tick_rate() {
        for hz in [1e9, 2_596_098_027.0] {
            let clock = measured(Character { hz, ..Character::default() });
            assert!((clock.read_ns.unwrap() - 25.0).abs() < 0.3, "{hz}: {clock:?}");
        }
    }

    #[test]
    fn a_slow_clock_raises_an_alarm() {
        let clock = measured(Character { cost_ns: 7_350.0, ..Character::default() });
        assert_eq!(alarms(clock), [("clock-slow".into(), Severity::Critical)]);
        let clock = measured(Character { cost_ns: 160.0, ..Character::default() });
        assert_eq!(alarms(clock), [("clock-slow".into(), Severity::Warning)]);
    }

    #[test]
    fn a_clock_that_never_moves_is_critical() {
        let clock = measured(Character { hz: 0.0, ..Character::default() });
        // Its ticks have no rate, so only the missing movement is reported.
        assert_eq!(clock.stood_still_ns, Some(1e6));
        assert_eq!(alarms(clock), [("clock-coarse".into(), Severity::Critical)]);
    }

    #[test]
    fn a_hidden_step_is_unknown_with_the_reason() {
        let mut record = Record::default();
        record.differences.add(200_000_000);
        let measured_step = MeasuredStep { granularity: Granularity::Unknown, duration: Nanos(1e6) };
        let clock = summarize(SYSTEM, &record, Some(measured_step), NANOSECONDS, None);
        assert_eq!((clock.granularity_ns, clock.stood_still_ns), (None, None));
        assert_eq!(clock.granularity_unavailable.as_deref(), Some("interruptions of the measurement hid it"));
        assert_eq!(alarms(clock), []);
    }

    #[test]
    fn a_clock_that_moved_later_does_not_stand_still() {
        let mut record = Record::default();
        record.differences.add(0);
        record.differences.add(10_000_000);
        let measured_step = MeasuredStep { granularity: Granularity::NeverMoved, duration: Nanos(1e6) };
        let clock = summarize("x", &record, Some(measured_step), NANOSECONDS, None);
        assert_eq!(clock.stood_still_ns, None);
        let why = clock.granularity_unavailable;
        assert_eq!(why.as_deref(), Some("the clock did not move while its step was measured"));
    }
}
