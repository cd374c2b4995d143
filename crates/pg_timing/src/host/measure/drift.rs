//! Measures how two clocks drift against each other: their rates and their steps.

use timing_clock::{Bracket, Clock, Hertz, Nanos, Ppm, Rate, ticks_between};

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
            Some(ns / pair[0].ticks_to(&pair[1])).filter(|tick| tick.is_normal() && *tick > 0.0)
        };
        let mut ticks: Vec<f64> = self.brackets.windows(2).filter_map(tick).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.get(ticks.len() / 2).copied()
    }

    /// Returns the clock's rate in the longest period without a break, or `None` if there was no break. Without a break
    /// the whole measurement gives a better rate.
    ///
    /// During a suspend, or a pause of a virtual machine, one of the two clocks stands still. A rate that contains such
    /// a break is the rate of neither.
    pub fn unbroken_rate(&self) -> Option<Rate> {
        let tick = self.median_tick()?;
        let (from, to) = longest_period(&self.samples(tick))?;
        let span = to.at - from.at;
        let ratio = 1.0 + (to.offset - from.offset) / span;
        Some(Rate {
            rate: Hertz(ratio / tick * 1e9),
            uncertainty: Ppm((from.error + to.error) / span * 1e6),
            duration: Nanos(span),
        })
    }
}

/// Returns the first and the last sample of the longest period without a break, if there is a break. The samples are
/// converted with the clock's median rate.
fn longest_period(samples: &[Sample]) -> Option<(Sample, Sample)> {
    let is_break = |pair: &[Sample]| {
        let moved = (pair[1].offset - pair[0].offset).abs();
        moved > MAX_SLEW * (pair[1].at - pair[0].at) + pair[0].error + pair[1].error
    };
    let breaks: Vec<usize> =
        samples.windows(2).enumerate().filter(|(_, pair)| is_break(pair)).map(|(nth, _)| nth).collect();
    breaks.first()?;
    let starts = std::iter::once(0).chain(breaks.iter().map(|nth| nth + 1));
    let ends = breaks.iter().copied().chain([samples.len() - 1]);
    let (from, to) = starts.zip(ends).max_by_key(|(from, to)| to.saturating_sub(*from))?;
    (samples[to].at > samples[from].at).then(|| (samples[from], samples[to]))
}

/// A sudden change of the offset that no change of rate explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// ns since the first sample
    pub at: f64,
    /// change of the offset in ns; positive if the clock jumped ahead
    pub by: f64,
    /// bound on the error of `by`, in ns
    pub error: f64,
}

/// The drift that a series of samples shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// rate of the clock relative to the reference, without steps
    pub rate: Ppm,
    pub uncertainty: Ppm,
    /// difference between the rates of the first and the second half, beyond the errors of both
    pub bend: Ppm,
    pub steps: Vec<Step>,
    pub over: Nanos,
}

/// The kernel lets NTP slew a clock by 500 ppm. This is twice as much, because a counter's rate can change, too. A
/// faster change of the offset is a step.
const MAX_SLEW: f64 = 1_000e-6;

/// Returns the drift. `None` with fewer than three samples, because two cannot separate a step from a slew.
pub fn trend(samples: &[Sample]) -> Option<Trend> {
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < 3 || last.at <= first.at {
        return None;
    }
    let mut steps = Vec::new();
    // The samples without the steps.
    let mut without_steps = vec![*first];
    let mut stepped = 0.0;
    for pair in samples.windows(2) {
        let (moved, error) = (pair[1].offset - pair[0].offset, pair[0].error + pair[1].error);
        if moved.abs() > error + MAX_SLEW * (pair[1].at - pair[0].at) {
            steps.push(Step { at: pair[1].at, by: moved, error });
            stepped += moved;
        }
        without_steps.push(Sample { offset: pair[1].offset - stepped, ..pair[1] });
    }
    let (rate, uncertainty) = between(&without_steps[0], &without_steps[without_steps.len() - 1]);
    let middle = &without_steps[without_steps.len() / 2];
    let halves = (between(&without_steps[0], middle), between(middle, &without_steps[without_steps.len() - 1]));
    let difference = (halves.0.0 - halves.1.0).abs() - halves.0.1 - halves.1.1;
    Some(Trend {
        rate: Ppm(rate),
        uncertainty: Ppm(uncertainty),
        bend: Ppm(if difference.is_finite() { difference.max(0.0) } else { 0.0 }),
        steps,
        over: Nanos(last.at - first.at),
    })
}

/// Returns the rate between two samples and its error, in ppm.
fn between(a: &Sample, b: &Sample) -> (f64, f64) {
    let span = b.at - a.at;
    ((b.offset - a.offset) / span * 1e6, (a.error + b.error) / span * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timing_clock::sim::{Character, SimClock, World};

    /// Returns the drift of a clock of this rate, with a pause in ns after each sample.
    fn trend_of(hz: f64, pauses: &[f64]) -> Trend {
        let world = World::new(9);
        let clock = SimClock::new(&world, Character { hz, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let mut meter = DriftMeter::new(&clock, 1.0, &reference, Nanos(1.0));
        for ns in pauses {
            meter.sample();
            world.pass_ns(*ns);
        }
        trend(&meter.samples(1.0)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn the_rate_is_within_its_error(ppm in -500.0..500.0f64) {
            let got = trend_of(1e9 * (1.0 + ppm / 1e6), &[1e8; 20]);
            prop_assert!((got.rate.0 - ppm).abs() <= got.uncertainty.0 + 1e-6, "{got:?}");
            prop_assert!(got.steps.is_empty() && got.bend.0 == 0.0, "{got:?}");
        }

        #[test]
        fn a_step_is_not_part_of_the_rate(by in prop_oneof![-1e10..-1e6f64, 1e6..1e10f64], ppm in -400.0..400.0f64) {
            let by: f64 = by;
            let mut samples: Vec<Sample> = (0..20)
                .map(|n| Sample { at: n as f64 * 1e8, offset: n as f64 * 1e8 * ppm / 1e6, error: 30.0 })
                .collect();
            samples[12..].iter_mut().for_each(|sample| sample.offset += by);
            let got = trend(&samples).unwrap();
            prop_assert_eq!(got.steps.len(), 1);
            prop_assert!((got.steps[0].by - by).abs() < 1e8 * 500.0 / 1e6, "{:?}", got);
            // The step contains the slew of its interval, which is a twentieth of the whole.
            prop_assert!((got.rate.0 - ppm).abs() <= 500.0 / 15.0, "{:?}", got);
        }
    }

    #[test]
    fn the_error_of_a_sample_contains_the_steps_of_both_clocks() {
        let world = World::new(9);
        let clock = SimClock::new(&world, Character { hz: 2e9, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let mut meter = DriftMeter::new(&clock, 70.0, &reference, Nanos(5.0));
        meter.sample();
        let half_width = meter.brackets[0].half_width();
        assert_eq!(meter.samples(0.5)[0].error, (half_width + 70.0) / 2.0 + 5.0);
    }

    #[test]
    fn a_change_of_rate_is_measured() {
        let samples: Vec<Sample> = (0..21)
            .map(|n| {
                let t = n as f64 * 1e8;
                Sample { at: t, offset: if n <= 10 { 0.0 } else { (t - 1e9) * 50e-6 }, error: 30.0 }
            })
            .collect();
        let got = trend(&samples).unwrap();
        assert!((got.bend.0 - 50.0).abs() < 1.0 && got.steps.is_empty(), "{got:?}");
    }

    /// Returns the rate and the samples of a meter whose reference stands still for `pause_ns` after sample `after`.
    fn paused(hz: f64, step: u64, samples: usize, after: usize, pause_ns: f64) -> (Option<Rate>, Vec<Sample>) {
        let world = World::new(4);
        let clock = SimClock::new(&world, Character { hz, ..Character::default() });
        let reference = SimClock::new(&world, Character { step, ..Character::default() });
        let mut meter = DriftMeter::new(clock, 1.0, reference, Nanos(step as f64));
        let mut asleep = 0;
        for nth in 0..samples {
            meter.sample();
            if let Some(bracket) = meter.brackets.last_mut() {
                bracket.inside -= asleep;
            }
            world.pass_ns(if nth == after { pause_ns } else { 1e8 });
            asleep += if nth == after { pause_ns as u64 } else { 0 };
        }
        let rate = meter.unbroken_rate();
        let ns_per_tick = rate.map_or(1e9 / hz, |rate| rate.rate.nanos(1.0).0);
        (rate, meter.samples(ns_per_tick))
    }

    #[test]
    fn the_rate_is_measured_in_the_longest_period_without_a_pause() {
        let hz = 2.3e9;
        let (rate, samples) = paused(hz, 1, 50, 20, 60e9);
        let rate = rate.unwrap();
        assert!(rate.rate.ppm_from(Hertz(hz)).0.abs() <= rate.uncertainty.0, "{rate:?}");
        // Samples 21 to 49, and not the whole measurement.
        assert!((rate.duration.secs() - 2.8).abs() < 0.01 && rate.uncertainty.0 < 1.0, "{rate:?}");
        let got = trend(&samples).unwrap();
        assert_eq!(got.steps.len(), 1, "{got:?}");
        assert!((got.steps[0].by - 60e9).abs() < 1e7, "{got:?}");
    }

    /// Some kernels count time in timer ticks. Then a tick is the error of a sample, and no step.
    #[test]
    fn a_coarse_reference_causes_no_steps() {
        for step in [1, 279, 4_000_000, 10_000_000] {
            let (rate, samples) = paused(2.3e9, step, 40, usize::MAX, 0.0);
            assert_eq!(rate, None, "there is no break: step {step}");
            let got = trend(&samples).unwrap();
            assert!(got.steps.is_empty() && got.bend.0 == 0.0, "step {step}: {got:?}");
            assert!(got.rate.0.abs() <= got.uncertainty.0, "step {step}: {got:?}");
        }
    }

    #[test]
    fn too_few_samples_have_no_trend() {
        assert_eq!(trend(&[]), None);
        let sample = Sample { at: 0.0, offset: 0.0, error: 1.0 };
        assert_eq!(trend(&[sample, sample, sample]), None, "no time passed");
    }
}
