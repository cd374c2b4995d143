//! Exact figures of records that are written by hand. The clock has two ticks per nanosecond.

use super::super::{MeasuredStep, Record, log2_row, summarize, without_rate};
use crate::report::{Bin, ClockReport, Gaps, Percentiles};
use timing_clock::{Granularity, Hertz, NANOSECONDS, Nanos};

const RATE: Hertz = Hertz(2e9);

/// Returns a record with reads of 100 ns.
fn record(buffers: usize) -> Record {
    let mut record = Record::default();
    for nth in 0..buffers {
        record.buffers.push(180.0 + 10.0 * (nth % 5) as f64);
        record.outside.push(300.0);
    }
    (0..1000).for_each(|_| _ = record.differences.add(200));
    (record.classic.ticks, record.classic.reads) = (1_000_000, 20_000);
    record
}

fn figures(record: &Record, step_ticks: f64) -> ClockReport {
    let step = MeasuredStep { granularity: Granularity::Step(step_ticks), duration: Nanos(1e6) };
    summarize("x", record, Some(step), RATE, Some(NANOSECONDS))
}

#[test]
fn the_spread_needs_eight_buffers() {
    let record_of_8 = record(8);
    let [low, median, high] = record_of_8.buffers.quartiles().unwrap();
    assert!(low < high);
    let clock = figures(&record_of_8, 20.0);
    assert_eq!((clock.read_ns, clock.read_spread_ns), (Some(median / 2.0), Some((high - low) / 4.0)));
    assert_eq!(figures(&record(7), 20.0).read_spread_ns, None);
}

#[test]
fn a_coarse_clock_is_timed_by_another_one() {
    // A buffer of 1024 reads takes 102.4 us. The limit is 2% of it.
    let read = |step| figures(&record(5), step).read_ns;
    assert_eq!((read(4096.0), read(4097.0)), (Some(100.0), Some(300.0)));
}

#[test]
fn the_classic_figure_needs_more_than_50_steps() {
    // The loop took 500 us.
    let loop_ns = |step| figures(&record(8), step).loop_ns;
    assert_eq!((loop_ns(20_000.0), loop_ns(19_999.0), loop_ns(20.0)), (None, Some(25.0), Some(25.0)));
}

#[test]
fn a_gap_is_longer_than_16_medians() {
    let mut record = record(8);
    // The threshold itself, 1600 ns, is not a gap.
    [3200, 3202, 8000, 8000].into_iter().for_each(|ticks| _ = record.differences.add(ticks));
    let threshold_ns = 1600.0;
    let total_ns = 1601.0 + 2.0 * 4000.0;
    let share = total_ns / (1000.0 * 100.0 + threshold_ns + total_ns);
    let expected = Gaps { threshold_ns, count: 3, total_ns, largest_ns: 4000.0, share };
    assert_eq!(figures(&record, 20.0).gaps, Some(expected));
    assert_eq!(figures(&record, 4097.0).gaps, None, "the clock is too coarse");
    record.backward_steps = 1;
    assert_eq!(figures(&record, 20.0).gaps, None, "differences contain backward steps");
}

#[test]
fn the_threshold_of_a_fast_clock_is_1_us() {
    let mut record = record(0);
    record.buffers.push(20.0);
    record.differences = Default::default();
    (0..100).for_each(|_| _ = record.differences.add(20));
    assert_eq!(figures(&record, 2.0).gaps.map(|gaps| (gaps.threshold_ns, gaps.share)), Some((1000.0, 0.0)));
    record.differences = Default::default();
    record.differences.add(0);
    assert_eq!(figures(&record, 0.0).gaps.map(|gaps| gaps.share), Some(0.0), "no time passed");
}

#[test]
fn percentiles_and_the_histogram_are_in_ns() {
    let mut record = record(8);
    record.differences.add(1400);
    let clock = figures(&record, 20.0);
    let Percentiles { min_ns, p50_ns, p99_9_ns, max_ns, .. } = clock.percentiles.unwrap();
    assert_eq!((min_ns, p50_ns, p99_9_ns, max_ns), (100.0, 100.0, 100.0, 700.0));
    let rows: Vec<Bin> = clock.histogram.into_iter().filter(|row| row.count > 0).collect();
    assert_eq!(rows, [Bin { le_ns: 127, ge_ns: None, count: 1000 }, Bin { le_ns: 1023, ge_ns: None, count: 1 }]);
}

#[test]
fn rows_are_powers_of_two() {
    assert_eq!([0, 1, 2, 3, 4, 7, 8, u64::MAX].map(log2_row), [0, 1, 2, 2, 3, 3, 4, 64]);
}

#[test]
fn without_a_rate_only_counts_are_known() {
    let mut record = record(8);
    record.backward_steps = 3;
    let clock = without_rate("rdtsc", &record);
    assert_eq!((clock.name.as_str(), clock.reads, clock.backward_steps, clock.read_ns), ("rdtsc", 1003, 3, None));
    assert_eq!(clock.unavailable.as_deref(), Some("its rate is unknown"));
}

#[test]
fn the_undisturbed_cost_needs_eight_buffers_too() {
    let record_of_8 = record(8);
    let low = record_of_8.buffers.undisturbed().unwrap();
    assert_eq!(figures(&record_of_8, 20.0).undisturbed_ns, Some(low / 2.0));
    assert_eq!(figures(&record_of_8, 4097.0).undisturbed_ns, Some(300.0), "another clock timed the buffers");
    assert_eq!(figures(&record(7), 20.0).undisturbed_ns, None);
}

/// Returns why the step is unknown, and the time for which the clock stood still.
fn without_step(record: &Record, granularity: Granularity) -> (Option<String>, Option<f64>) {
    let step = MeasuredStep { granularity, duration: Nanos(1e6) };
    let clock = summarize("x", record, Some(step), RATE, None);
    assert_eq!(clock.granularity_ns, None);
    (clock.granularity_unavailable, clock.stood_still_ns)
}

#[test]
fn a_clock_stands_still_only_if_it_never_moved() {
    let mut still = Record::default();
    assert_eq!(without_step(&still, Granularity::NeverMoved), (None, None), "it was not read");
    still.differences.add(0);
    assert_eq!(without_step(&still, Granularity::NeverMoved), (None, Some(1e6)));
    let later = "the clock did not move while its step was measured";
    assert_eq!(without_step(&record(8), Granularity::NeverMoved), (Some(later.into()), None));
    let hidden = "interruptions of the measurement hid it";
    assert_eq!(without_step(&record(8), Granularity::Unknown), (Some(hidden.into()), None));
}
