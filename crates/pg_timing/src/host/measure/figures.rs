//! Converts a record in ticks to figures in nanoseconds.

#[cfg(test)]
mod tests;

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
    let (buffers, timed_by) = if times_itself { (&record.buffers, Some(rate)) } else { (&record.outside, outside) };
    let read = timed_by.and_then(|rate| Some(buffers.quartiles()?.map(|ticks| rate.nanos(ticks).0)));
    let undisturbed = timed_by.and_then(|rate| Some(rate.nanos(buffers.undisturbed()?).0));
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
        timed_call_ns: outside
            .filter(|_| record.timed_calls.len() >= MIN_BUFFERS)
            .and_then(|rate| Some(round(rate.nanos(record.timed_calls.quartiles()?[1]).0)))
            .filter(|ns| *ns > 0.0),
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
