//! The CPU's counter over the intervals: its rate, its steps and changes, and whether PostgreSQL's fast clock can use it.
//!
//! The reference clock is not adjusted by NTP, so both run at a constant ratio. If the counter deviates within an interval by
//! more than a crystal can, it has jumped, or its rate has changed. A second comparison one second later shows which.

use super::sample::Sample;
use super::{Machine, OffsetStep, readings};
use crate::host::measure::{Drifting, MAX_WANDER, Sample as Offset};
use crate::report::{COUNTER, CounterRate, Drift, DriftStep, Report, TscReport};
use timing_clock::{REFERENCE_NAME, Rate};

/// The counter's rate before this interval, and its faults in the last intervals.
#[derive(Default)]
pub struct CounterWatch {
    rate: Option<Rate>,
    /// number of intervals
    intervals: u64,
    steps: Vec<(u64, DriftStep)>,
    change_ppm: Option<(u64, f64)>,
    seconds: f64,
}

impl CounterWatch {
    /// Evaluates the last sample of `meter`. Suspends explain a step. `pause` waits for a second.
    pub fn evaluate(
        &mut self,
        meter: &mut dyn Drifting,
        explained: bool,
        mut pause: impl FnMut(),
        sample: &mut Sample,
    ) {
        self.intervals += 1;
        let Some(old) = self.rate else {
            // The first rate: two more comparisons, so that a step is not taken for the rate.
            (0..2).for_each(|_| {
                pause();
                meter.sample();
            });
            self.rate = meter.rate();
            return;
        };
        let tick = old.rate.nanos(1.0).0;
        let samples = meter.samples(tick);
        if let Some([before, now]) = samples.last_chunk::<2>() {
            self.seconds += (now.at - before.at) / 1e9;
            if let Some(by_ns) = deviation(before, now, &old) {
                pause();
                meter.sample();
                let after = meter.samples(tick).last().copied();
                let change = after.and_then(|after| rate_change(now, &after, &old));
                // The samples before the change describe another rate, or another offset.
                meter.keep_last(2);
                match change {
                    Some(ppm) => {
                        sample.rate_change_ppm = Some(ppm);
                        self.change_ppm = Some((self.intervals, ppm));
                    }
                    None if !explained => self.add_step(by_ns, before.error + now.error, sample),
                    None => {}
                }
                if change.is_none() {
                    // The rate is the old one. Two samples within a second would give it with a larger error.
                    return self.forget();
                }
            }
        }
        meter.keep_last(readings::LENGTH);
        self.rate =
            meter.rate().filter(|new| new.uncertainty <= old.uncertainty || new.duration.secs() > 1.0).or(self.rate);
        self.forget();
    }

    fn add_step(&mut self, by_ns: f64, error_ns: f64, sample: &mut Sample) {
        sample.offset_steps.push(OffsetStep { clock: COUNTER, reference: REFERENCE_NAME, by_ns, error_ns });
        let step = DriftStep { at_seconds: self.seconds, by_ns: by_ns.round(), error_ns: error_ns.ceil() };
        self.steps.push((self.intervals, step));
    }

    /// Forgets faults that are older than the window.
    fn forget(&mut self) {
        let oldest = self.intervals.saturating_sub(readings::LENGTH as u64);
        self.steps.retain(|(interval, _)| *interval > oldest);
        self.change_ppm = self.change_ppm.filter(|(interval, _)| *interval > oldest);
    }

    /// Returns the rate for conversions, with its error.
    pub fn measured(&self) -> Option<Rate> {
        self.rate
    }

    /// Returns the rate for the report.
    pub fn rate(&self) -> Option<CounterRate> {
        self.rate.map(|rate| CounterRate { hz: rate.rate.0, uncertainty_ppm: rate.uncertainty.0 })
    }

    /// Returns the counter's drift for the report: the faults of the last intervals. The rate itself is subtracted.
    pub fn drift(&self) -> Option<Drift> {
        let rate = self.rate?;
        Some(Drift {
            clock: COUNTER.into(),
            reference: REFERENCE_NAME.into(),
            rate_ppm: 0.0,
            uncertainty_ppm: (rate.uncertainty.0 * 1e4).ceil() / 1e4,
            bend_ppm: self.change_ppm.map_or(0.0, |(_, ppm)| ppm.abs()),
            steps: self.steps.iter().map(|(_, step)| step.clone()).collect(),
            over_seconds: rate.duration.secs(),
        })
    }
}

/// The counter of an emulator (qemu without KVM) moves by some microseconds on a busy host. In the default interval, a crystal
/// may deviate by 75 us anyway.
const MIN_STEP_NS: f64 = 50_000.0;

/// Returns the counter's deviation from its rate between two samples, in ns, if neither a crystal nor an emulator explains it.
fn deviation(before: &Offset, now: &Offset, rate: &Rate) -> Option<f64> {
    let (moved, span) = (now.offset - before.offset, now.at - before.at);
    let possible = (MAX_WANDER + rate.uncertainty.0 * 1e-6) * span + before.error + now.error;
    (moved.abs() > possible.max(MIN_STEP_NS)).then_some(moved)
}

/// Returns the change of the rate in ppm between two samples, if it exceeds the errors and what a crystal can.
fn rate_change(now: &Offset, after: &Offset, rate: &Rate) -> Option<f64> {
    let span = after.at - now.at;
    let ppm = (after.offset - now.offset) / span * 1e6;
    let possible = MAX_WANDER * 1e6 + rate.uncertainty.0 + (now.error + after.error) / span * 1e6;
    (span > 0.0 && ppm.abs() > possible).then_some(ppm)
}

/// A smaller change of the rate changes no result.
const NOTICEABLE_PPM: f64 = 0.5;

/// The last judgement of the counter. A judgement takes milliseconds on a host with many CPUs, so it is repeated only if the
/// facts or the counter's rate changed.
#[derive(Default)]
pub struct CounterJudgement {
    /// the judgement, and the rate with which the counter was judged
    last: Option<(TscReport, Option<Rate>)>,
}

impl CounterJudgement {
    /// Call it after the facts were read again.
    pub fn facts_changed(&mut self) {
        self.last = None;
    }

    /// Returns the judgement for these facts and this rate.
    pub fn of(&mut self, machine: &impl Machine, facts: &Report, rate: Option<Rate>) -> TscReport {
        let last = self.last.take().filter(|(_, judged)| !is_new(rate, *judged));
        let (tsc, judged) = last.unwrap_or_else(|| {
            let measured = rate.ok_or_else(|| "not measured yet".to_string());
            (machine.judge_counter(facts, &measured), rate)
        });
        self.last = Some((tsc.clone(), judged));
        tsc
    }
}

/// Returns whether the rate differs from that of the last judgement, or is much more precise.
fn is_new(now: Option<Rate>, judged: Option<Rate>) -> bool {
    match (now, judged) {
        (Some(now), Some(judged)) => {
            now.uncertainty.0 < judged.uncertainty.0 / 2.0
                || now.rate.ppm_from(judged.rate).0.abs() > judged.uncertainty.0 + NOTICEABLE_PPM
        }
        (now, judged) => now.is_some() != judged.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timing_clock::{Hertz, Nanos, Ppm};

    #[test]
    fn a_rate_is_new_if_it_changed_or_is_more_precise() {
        let rate = |hz, ppm| Some(Rate::new(Hertz(hz), Ppm(ppm), Nanos(1e9)));
        let judged = rate(1e9, 1.0);
        assert!(is_new(judged, None) && is_new(None, judged) && !is_new(None, None));
        // 1 ppm of 1 GHz is 1000 Hz.
        assert!(!is_new(rate(1e9 + 1400.0, 1.0), judged));
        assert!(is_new(rate(1e9 + 1600.0, 1.0), judged));
        assert!(!is_new(rate(1e9, 0.6), judged));
        assert!(is_new(rate(1e9, 0.4), judged));
    }
}
