//! Measures how two clocks drift against each other: their rates and their steps.

#[cfg(test)]
mod tests;
mod trend;

pub use trend::{MAX_SLEW, Step, Trend, trend, trend_beyond};

use timing_clock::{Bracket, Clock, Hertz, Nanos, Ppm, Rate, ticks_between};
use trend::moves_beyond;

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
#[derive(Clone, Debug)]
pub struct DriftMeter<C, R> {
    clock: C,
    /// step of the clock in ticks, by which a reading can be late
    clock_step: f64,
    reference: R,
    reference_step: Nanos,
    /// readings of the reference between two reads of the clock
    brackets: Vec<Bracket<u64>>,
}

impl<C: Clock, R: Clock> DriftMeter<C, R> {
    /// Returns a meter without samples. The ticks of `reference` are nanoseconds.
    pub fn new(clock: C, clock_step: f64, reference: R, reference_step: Nanos) -> Self {
        DriftMeter { clock, clock_step, reference, reference_step, brackets: Vec::new() }
    }

    /// Takes one sample.
    pub fn sample(&mut self) {
        self.brackets.extend(Bracket::narrowest(&self.clock, || self.reference.read()));
    }
}

impl<C, R> DriftMeter<C, R> {
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

    /// Returns the clock's rate from the first to the last sample.
    fn whole_rate(&self) -> Option<Rate> {
        let samples = self.samples(self.median_tick()?);
        rate_between(samples.first()?, samples.last()?, self.median_tick()?)
    }

    /// Returns the clock's rate in the longest period of constant rate, or `None` if the rate was constant all the
    /// time. Then the whole measurement gives a better rate.
    ///
    /// During a suspend, or a pause of a virtual machine, one of the two clocks stands still. Some emulators move their
    /// TSC by some microseconds. A rate that contains such a change is the rate of neither clock.
    pub fn constant_rate(&self) -> Option<Rate> {
        let tick = self.median_tick()?;
        let (from, to) = longest_period(&self.samples(tick))?;
        rate_between(&from, &to, tick)
    }
}

/// Returns the clock's rate between two samples that were converted with `tick` ns per tick.
fn rate_between(from: &Sample, to: &Sample, tick: f64) -> Option<Rate> {
    let span = to.at - from.at;
    let ratio = 1.0 + (to.offset - from.offset) / span;
    let uncertainty = Ppm((from.error + to.error) / span * 1e6);
    (span > 0.0).then(|| Rate::new(Hertz(ratio / tick * 1e9), uncertainty, Nanos(span)))
}

/// A [`DriftMeter`] of any two clocks, so that a list can hold all meters.
pub trait Drifting {
    /// Takes one sample.
    fn sample(&mut self);
    /// Returns the samples. `ns_per_tick` converts the clock's ticks.
    fn samples(&self, ns_per_tick: f64) -> Vec<Sample>;
    /// Returns the clock's rate from the first to the last sample, or in the longest period without a break.
    fn rate(&self) -> Option<Rate>;
    /// Forgets the oldest samples, so that at most `count` remain.
    fn keep_last(&mut self, count: usize);
}

impl<C: Clock, R: Clock> Drifting for DriftMeter<C, R> {
    fn sample(&mut self) {
        DriftMeter::sample(self);
    }

    fn samples(&self, ns_per_tick: f64) -> Vec<Sample> {
        DriftMeter::samples(self, ns_per_tick)
    }

    fn rate(&self) -> Option<Rate> {
        self.constant_rate().or_else(|| self.whole_rate())
    }

    fn keep_last(&mut self, count: usize) {
        self.brackets.drain(..self.brackets.len().saturating_sub(count));
    }
}

/// A crystal changes its rate by less than this within seconds. This also covers the error of the median rate.
pub const MAX_WANDER: f64 = 5e-6;

/// Returns the first and the last sample of the longest period of constant rate, if the rate was not constant all the
/// time. The samples are converted with the clock's median rate.
fn longest_period(samples: &[Sample]) -> Option<(Sample, Sample)> {
    let breaks: Vec<usize> =
        samples.windows(2).enumerate().filter(|(_, pair)| moves_beyond(MAX_WANDER, pair)).map(|(nth, _)| nth).collect();
    breaks.first()?;
    let starts = std::iter::once(0).chain(breaks.iter().map(|nth| nth + 1));
    let ends = breaks.iter().copied().chain([samples.len() - 1]);
    let (from, to) = starts.zip(ends).max_by_key(|(from, to)| to.saturating_sub(*from))?;
    (samples[to].at > samples[from].at).then(|| (samples[from], samples[to]))
}
