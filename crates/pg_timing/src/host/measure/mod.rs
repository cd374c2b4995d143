//! Turns readings of clocks into figures: the drift of two clocks against each other, and the records of one clock in
//! nanoseconds. The loops that read are in the crate `read-loops`.

#[cfg(test)]
mod tests;

pub use read_loops::*;

use crate::report::{Bin, ClockReport, Drift, DriftStep, Gaps, Percentiles};
use timing_clock::{Bracket, Clock, Granularity, Hertz, Nanos, Ppm, Rate, ticks_between};

/// One comparison of a clock with the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// reading of the reference, in ns since the first sample
    pub at: f64,
    /// clock minus reference, in ns, relative to the first sample
    pub offset: f64,
    /// bound on the error of `offset`, in ns
    pub error: f64,
}

/// Compares a clock with a reference repeatedly.
pub struct DriftMeter<'a> {
    /// reads the reference between two reads of the clock
    read: Box<dyn Fn() -> Option<Bracket<u64>> + 'a>,
    /// step of the clock in ticks, by which a reading can be late
    clock_step: f64,
    reference_step: Nanos,
    brackets: Vec<Bracket<u64>>,
}

impl<'a> DriftMeter<'a> {
    /// Returns a meter without samples. The ticks of `reference` are nanoseconds.
    pub fn new(clock: impl Clock + 'a, clock_step: f64, reference: impl Clock + 'a, reference_step: Nanos) -> Self {
        let read = Box::new(move || Bracket::narrowest(&clock, || reference.read()));
        DriftMeter { read, clock_step, reference_step, brackets: Vec::new() }
    }

    /// Takes one sample.
    pub fn sample(&mut self) {
        self.brackets.extend((self.read)());
    }

    /// Forgets the oldest samples, so that at most `count` remain.
    pub fn keep_last(&mut self, count: usize) {
        self.brackets.drain(..self.brackets.len().saturating_sub(count));
    }

    /// Returns the samples. `ns_per_tick` converts the clock's ticks; a counter's rate is known only at the end.
    pub fn samples(&self, ns_per_tick: f64) -> Vec<Sample> {
        let Some(first) = self.brackets.first() else { return Vec::new() };
        let sample = |bracket: &Bracket<u64>| {
            let at = ticks_between(first.inside, bracket.inside) as f64;
            Sample {
                at,
                offset: first.ticks_to(bracket) * ns_per_tick - at,
                error: (bracket.half_width() + self.clock_step) * ns_per_tick + self.reference_step.0,
            }
        };
        self.brackets.iter().map(sample).collect()
    }

    /// Returns the median of the clock's ns per tick between neighboring samples.
    fn median_tick(&self) -> Option<f64> {
        let tick = |pair: &[Bracket<u64>]| {
            let ns = ticks_between(pair[0].inside, pair[1].inside) as f64;
            Some(ns / pair[0].ticks_to(&pair[1])).filter(|tick| tick.is_normal() && tick.is_sign_positive())
        };
        let mut ticks: Vec<f64> = self.brackets.windows(2).filter_map(tick).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.get(ticks.len() / 2).copied()
    }

    /// Returns the clock's rate in the longest period of constant rate.
    ///
    /// During a suspend, or a pause of a virtual machine, one of the two clocks stands still. Some emulators move their
    /// TSC by some microseconds. A rate that contains such a change is the rate of neither clock.
    pub fn rate(&self) -> Option<Rate> {
        let tick = self.median_tick()?;
        let (from, to) = longest_period(&self.samples(tick))?;
        let span = to.at - from.at;
        let ratio = 1.0 + (to.offset - from.offset) / span;
        // Each reading can be late by up to one step, so a difference of two has an error of one step.
        let error = from.error + to.error - self.clock_step * tick - self.reference_step.0;
        let (rate, uncertainty) = (Hertz(ratio / tick * 1e9), Ppm(error / span * 1e6));
        (span > 0.0 && ratio > 0.0).then_some(Rate { rate, uncertainty, duration: Nanos(span) })
    }
}

/// A crystal changes its rate by less than this within seconds. This also covers the error of the median rate.
pub const MAX_WANDER: f64 = 5e-6;

/// Returns the first and the last sample of the longest period of constant rate: of all samples, if no period has two. The
/// samples are converted with the clock's median rate.
fn longest_period(samples: &[Sample]) -> Option<(Sample, Sample)> {
    let periods = samples.chunk_by(|a, b| !moves_beyond(MAX_WANDER, &[*a, *b]));
    let ends = |period: &[Sample]| Some((*period.first()?, *period.last()?));
    let longest = periods.max_by_key(|period| period.len()).and_then(ends).filter(|(from, to)| to.at > from.at);
    longest.or_else(|| ends(samples))
}

/// The kernel lets NTP slew a clock by 500 ppm. This is twice as much, because a counter's rate can change, too. A
/// faster change of the offset is a step.
pub const MAX_SLEW: f64 = 1_000e-6;

/// Returns the drift of a clock against a reference. A change of the offset by more than `slew` (a fraction) is a step. `None`
/// with fewer than three samples, because two cannot separate a step from a slew.
pub fn trend((clock, reference): (&str, &str), slew: f64, samples: &[Sample]) -> Option<Drift> {
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < 3 || last.at <= first.at {
        return None;
    }
    let (rate, uncertainty) = rate_without_steps(slew, samples);
    let middle = samples.len() / 2;
    let halves = (rate_without_steps(slew, &samples[..=middle]), rate_without_steps(slew, &samples[middle..]));
    let bend = (halves.0.0 - halves.1.0).abs() - halves.0.1 - halves.1.1;
    // JSON reads rounded figures back as the same numbers.
    let round = |x: f64| (x * 1e4).round() / 1e4;
    let step = |pair: &[Sample]| {
        let interval = pair[1].at - pair[0].at;
        DriftStep {
            at_seconds: round(pair[1].at / 1e9),
            by_ns: (pair[1].offset - pair[0].offset - rate * interval).round(),
            error_ns: (pair[0].error + pair[1].error + uncertainty * interval).ceil(),
        }
    };
    Some(Drift {
        clock: clock.into(),
        reference: reference.into(),
        rate_ppm: round(rate * 1e6),
        uncertainty_ppm: round(uncertainty * 1e6),
        bend_ppm: round((bend * 1e6).max(0.0)),
        steps: samples.windows(2).filter(|pair| moves_beyond(slew, pair)).map(step).collect(),
        over_seconds: round((last.at - first.at) / 1e9),
    })
}

/// Returns the rate and its error, as fractions, from the periods between the steps. An interval with a step contains
/// an unknown slew, so it is left out. If no interval remains, the rate is only known to be below `slew`.
fn rate_without_steps(slew: f64, samples: &[Sample]) -> (f64, f64) {
    let (mut moved, mut span, mut error) = (0.0, 0.0, 0.0);
    for period in samples.chunk_by(|a, b| !moves_beyond(slew, &[*a, *b])) {
        if let [from, .., to] = period {
            moved += to.offset - from.offset;
            span += to.at - from.at;
            error += from.error + to.error;
        }
    }
    if span > 0.0 { (moved / span, error / span) } else { (0.0, slew) }
}

/// Returns whether the offset changed by more than `rate` (a fraction) and the errors of both samples can explain.
pub fn moves_beyond(rate: f64, pair: &[Sample]) -> bool {
    let moved = (pair[1].offset - pair[0].offset).abs();
    moved > rate * (pair[1].at - pair[0].at) + pair[0].error + pair[1].error
}

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
    let granularity = measured_step.map(|measured| measured.granularity);
    let step = granularity.and_then(|granularity| granularity.step());
    let own = record.buffers.quartiles();
    let times_itself = step.zip(own).is_some_and(|(step, [_, read, _])| step <= MAX_STEP_SHARE * read * BUFFER as f64);
    let step = step.map(|ticks| rate.nanos(ticks).0);
    let (buffers, timed_by) = if times_itself { (&record.buffers, Some(rate)) } else { (&record.outside, outside) };
    let read = timed_by.and_then(|rate| Some(buffers.quartiles()?.map(|ticks| rate.nanos(ticks).0)));
    let undisturbed = timed_by.and_then(|rate| Some(rate.nanos(buffers.undisturbed()?).0));
    let never_moved = granularity == Some(Granularity::NeverMoved);
    let no_step = match granularity {
        Some(Granularity::Unknown) => Some("interruptions of the measurement hid it"),
        _ if never_moved && record.moved() => Some("the clock did not move while its step was measured"),
        _ => None,
    };
    let enough = record.buffers.count() >= MIN_BUFFERS;
    let percentiles = Percentiles::of(|share| Some(round(ns(record.differences.quantile(share)?))));
    ClockReport {
        name: name.into(),
        read_ns: read.map(|[_, median, _]| round(median)),
        read_spread_ns: read.filter(|_| enough).map(|[low, _, high]| round((high - low) / 2.0)),
        undisturbed_ns: undisturbed.filter(|_| enough).map(round),
        timed_call_ns: outside
            .filter(|_| record.timed_calls.count() >= MIN_BUFFERS)
            .and_then(|rate| Some(round(rate.nanos(record.timed_calls.quartiles()?[1]).0)))
            .filter(|ns| *ns > 0.0),
        // For a coarse clock the mean is right only after many steps.
        loop_ns: step
            .filter(|step| ns(record.classic.ticks) > 50.0 * step)
            .map(|_| round(ns(record.classic.ticks) / record.classic.reads as f64)),
        granularity_ns: step.map(round),
        granularity_unavailable: no_step.map(Into::into),
        stood_still_ns: measured_step
            .filter(|_| never_moved && record.reads() > 0 && !record.moved())
            .map(|measured| measured.duration.0),
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

/// Returns the number of durations in each of PostgreSQL's rows, up to the last one that is not empty. A duration is in ns, and
/// has its number of occurrences.
pub fn log2_rows(durations: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut rows = Vec::new();
    for (ns, count) in durations {
        let row = log2_row(ns);
        rows.resize(rows.len().max(row + 1), 0);
        rows[row] += count;
    }
    rows
}

/// Returns the histogram with PostgreSQL's rows.
fn bins(differences: &Histogram, rate: Hertz) -> Vec<Bin> {
    let rows = log2_rows(differences.iter().map(|(ticks, count)| (rate.nanos(ticks as f64).0 as u64, count)));
    let bin = |(nth, count): (usize, u64)| Bin { le_ns: (1u64 << nth).wrapping_sub(1), ge_ns: None, count };
    rows.into_iter().enumerate().map(bin).collect()
}
