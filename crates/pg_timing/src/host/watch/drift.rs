//! Compares clocks in each interval: the CPU's counter and the kernel's clocks with a reference, and from time to time the
//! clocks of two CPUs.
//!
//! The counter's reference is not adjusted by NTP, so both run at a constant ratio. If the counter deviates within an interval
//! by more than a crystal can, it has jumped, or its rate has changed. A second comparison one second later shows which.

use super::*;
use crate::host::measure::{DriftMeter, MAX_WANDER, Sample as Offset, moves_beyond};
use crate::host::survey::clocks::{NO_SLEW, OffsetMeter};
use std::collections::VecDeque;

/// The counter's rate before this interval, and its faults in the last intervals.
#[derive(Default)]
pub struct CounterWatch {
    /// for conversions, with its error
    pub rate: Option<Rate>,
    faults: VecDeque<Fault>,
    seconds: f64,
}

/// What an interval showed: a step, a change of the rate in ppm, or neither.
#[derive(Default)]
struct Fault {
    step: Option<DriftStep>,
    change_ppm: Option<f64>,
}

impl CounterWatch {
    /// Evaluates the last sample of `meter`. Suspends explain a step. `pause` waits for a second.
    pub fn evaluate(&mut self, meter: &mut DriftMeter, explained: bool, mut pause: impl FnMut(), sample: &mut Sample) {
        let mut sample_later = |meter: &mut DriftMeter| {
            pause();
            meter.sample();
        };
        let Some(old) = self.rate else {
            // The first rate: two more comparisons, so that a step is not taken for the rate.
            (0..2).for_each(|_| sample_later(meter));
            self.rate = meter.rate();
            return;
        };
        let tick = old.rate.nanos(1.0).0;
        let (mut fault, mut is_step) = (Fault::default(), false);
        if let Some([before, now]) = meter.samples(tick).last_chunk::<2>() {
            self.seconds += (now.at - before.at) / 1e9;
            if let Some(by_ns) = deviation(before, now, &old) {
                sample_later(meter);
                fault.change_ppm = meter.samples(tick).last().and_then(|after| rate_change(now, after, &old));
                // The samples before the change describe another rate, or another offset.
                meter.keep_last(2);
                sample.rate_change_ppm = fault.change_ppm;
                is_step = fault.change_ppm.is_none();
                if is_step && !explained {
                    let error_ns = before.error + now.error;
                    sample.offset_steps.push(OffsetStep { clock: COUNTER, reference: REFERENCE_NAME, by_ns, error_ns });
                    let (by_ns, error_ns) = (by_ns.round(), error_ns.ceil());
                    fault.step = Some(DriftStep { at_seconds: self.seconds, by_ns, error_ns });
                }
            }
        }
        readings::push(&mut self.faults, readings::LENGTH, fault);
        // After a step the rate is the old one. Two samples within a second would give it with a larger error.
        if !is_step {
            meter.keep_last(readings::LENGTH);
            let is_better = |new: &Rate| new.uncertainty <= old.uncertainty || new.duration.secs() > 1.0;
            self.rate = meter.rate().filter(is_better).or(self.rate);
        }
    }

    /// Returns the counter's drift for the report: the faults of the last intervals. The rate itself is subtracted.
    pub fn drift(&self) -> Option<Drift> {
        let rate = self.rate?;
        Some(Drift {
            clock: COUNTER.into(),
            reference: REFERENCE_NAME.into(),
            rate_ppm: 0.0,
            uncertainty_ppm: (rate.uncertainty.0 * 1e4).ceil() / 1e4,
            bend_ppm: self.faults.iter().filter_map(|fault| fault.change_ppm).next_back().map_or(0.0, f64::abs),
            steps: self.faults.iter().filter_map(|fault| fault.step.clone()).collect(),
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

/// Smaller steps are not reported. EXPLAIN prints microseconds.
const VISIBLE_NS: f64 = 1_000.0;

/// Returns the steps between the last two samples. If the offset is constant, two samples are enough.
pub fn steps(offsets: &[OffsetMeter]) -> Vec<OffsetStep> {
    let step = |offset: &OffsetMeter| {
        let samples = offset.meter.samples(1.0);
        let (by_ns, error_ns) = match (offset.trend(), samples.as_slice()) {
            (Some(trend), [.., before, now]) if moves_beyond(offset.slew, &[*before, *now]) => {
                let step = trend.steps.last()?;
                (step.by_ns, step.error_ns)
            }
            (None, [before, now]) if offset.slew <= NO_SLEW => {
                let slew = offset.slew * (now.at - before.at);
                (now.offset - before.offset, before.error + now.error + slew)
            }
            _ => return None,
        };
        let is_visible = by_ns.abs() > VISIBLE_NS + error_ns;
        is_visible.then_some(OffsetStep { clock: offset.clock, reference: offset.reference, by_ns, error_ns })
    };
    offsets.iter().filter_map(step).collect()
}

/// A pair is compared after this many intervals: every five minutes by default. After a change, it is
/// also compared in the next intervals.
const EVERY: u64 = 20;

/// A comparison of a clock fails if another program keeps a CPU busy. It is not repeated at once, because both threads wait
/// actively. After this many failures in a row, one hour by default, the old bounds do not count any more.
const MOST_FAILURES: u32 = 12;

/// The bounds of the pairs that were compared.
#[derive(Default)]
pub struct SkewWatch {
    intervals: u64,
    /// number of comparisons
    compared: usize,
    /// the last bounds of each pair
    pub bounds: Vec<Skew>,
    /// comparisons that failed in a row
    failures: u32,
    /// why the last comparison has no bounds
    pub unavailable: Option<String>,
}

impl<M: Machine> Watch<M> {
    /// Compares the next pair of CPUs, if it is time. Returns the duration, and why there are no bounds.
    pub fn compare_cpus(&mut self, changed: bool) -> Option<Collector> {
        if changed {
            // The bounds belong to the previous clock source.
            self.skew = SkewWatch::default();
        }
        let skew = &mut self.skew;
        skew.intervals += 1;
        let cpus = self.facts.cpus.allowed.known().cloned().unwrap_or_default();
        // At the start, each pair is compared as soon as possible, one per interval. If that fails, the CPUs are busy.
        let is_start = skew.failures == 0 && skew.compared < cpus.len().saturating_sub(1);
        let is_due = is_start || skew.intervals.is_multiple_of(EVERY);
        let (&first, others) = cpus.split_first().filter(|(_, others)| is_due && !others.is_empty())?;
        let other = others[skew.compared % others.len()];
        let start = Instant::now();
        let pair = Cpus { allowed: Fact::Known(vec![first, other]), ..self.facts.cpus.clone() };
        let result = self.machine.skew(pair, self.counter.rate);
        let has_failed = result.skew_unavailable.is_some();
        skew.failures = if has_failed { skew.failures + 1 } else { 0 };
        let is_decided = !has_failed || skew.failures >= MOST_FAILURES;
        // The comparison of one clock can fail, and that of another one succeed. The old bounds hold until it is decided.
        let is_replaced = |old: &Skew| is_decided || result.skew.iter().any(|new| new.clock == old.clock);
        skew.bounds.retain(|old| old.b != other || !is_replaced(old));
        skew.bounds.extend(result.skew);
        if is_decided {
            skew.compared += 1;
            skew.unavailable = result.skew_unavailable;
        }
        Some(collector("skew", start, skew.unavailable.clone()))
    }
}
