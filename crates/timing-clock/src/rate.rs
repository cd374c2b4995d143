//! The rate of a counter, with its uncertainty.
//!
//! A *bracket* reads the counter, the reference clock, and the counter again, in this order. So the counter's value at
//! the instant of the reference lies between the two. The narrowest of many brackets is kept, because a wide one was
//! interrupted. Two brackets give the rate. The uncertainty is the sum of both half-widths and of one step of each clock
//! (a reading can be late by up to a step), divided by the ticks between the brackets.

use crate::{Bracket, Clock, Hertz, Nanos, Ppm, granularity, ticks_between};

/// A rate with its maximum error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// ticks of the counter per second of the reference
    pub rate: Hertz,
    /// maximum error of `rate`, if the reference is true
    pub uncertainty: Ppm,
    /// duration of the measurement
    pub over: Nanos,
}

/// Why no rate could be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// The reference clock did not move.
    ReferenceStalled,
    /// The counter did not move, but the reference did.
    CounterStalled,
    /// The counter went back.
    WentBack,
}

impl core::fmt::Display for RateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RateError::ReferenceStalled => "the reference clock did not move",
            RateError::CounterStalled => "the counter did not move",
            RateError::WentBack => "the counter went back",
        })
    }
}

impl std::error::Error for RateError {}

/// A measurement of a counter's rate. It becomes more precise the longer it runs.
#[derive(Clone, Debug)]
pub struct RateMeter<C, R> {
    counter: C,
    reference: R,
    first: Bracket<u64>,
    counter_step: f64,
    reference_step: f64,
}

/// Number of steps to observe before a measurement: enough to find the step, and done in 0.1 ms.
const STEPS: usize = 1024;
/// Time limit for finding a step. It is long enough for a coarse clock.
const STEP_TIME: Nanos = Nanos::from_millis(50.0);
/// After this many blocks of 256 reads without a movement, the reference stands still.
const STEP_BLOCKS: u32 = 40_000;

impl<C: Clock, R: Clock> RateMeter<C, R> {
    /// Finds the steps of both clocks and reads the first bracket. `reference` counts nanoseconds.
    ///
    /// This takes 0.2 ms, or up to 0.1 s if a clock is coarse.
    pub fn start(counter: C, reference: R) -> Result<Self, RateError> {
        let reference_step = step(&reference, &reference).ok_or(RateError::ReferenceStalled)?;
        let counter_step = step(&counter, &reference).ok_or(RateError::CounterStalled)?;
        RateMeter::start_with(counter, counter_step, reference, reference_step)
    }

    /// Reads the first bracket. The steps of both clocks are known, in their ticks.
    pub fn start_with(counter: C, counter_step: f64, reference: R, reference_step: f64) -> Result<Self, RateError> {
        let first = Bracket::narrowest(&counter, || reference.read()).ok_or(RateError::WentBack)?;
        Ok(RateMeter { counter, reference, first, counter_step, reference_step })
    }

    /// Returns the rate from the start until now.
    pub fn rate(&self) -> Result<Rate, RateError> {
        let now = self.bracket()?;
        let nanos = ticks_between(self.first.inside, now.inside);
        if nanos <= 0 {
            return Err(RateError::ReferenceStalled);
        }
        let ticks = self.first.ticks_to(&now);
        if ticks == 0.0 {
            return Err(RateError::CounterStalled);
        } else if ticks < 0.0 {
            return Err(RateError::WentBack);
        }
        let rate = Hertz(ticks / nanos as f64 * 1e9);
        let error =
            self.first.half_width() + now.half_width() + self.counter_step + rate.ticks(Nanos(self.reference_step));
        Ok(Rate { rate, uncertainty: Ppm(error / ticks * 1e6), over: Nanos(nanos as f64) })
    }

    fn bracket(&self) -> Result<Bracket<u64>, RateError> {
        Bracket::narrowest(&self.counter, || self.reference.read()).ok_or(RateError::WentBack)
    }

    /// Starts again now, with the known steps of the clocks.
    pub fn restart(&mut self) -> Result<(), RateError> {
        self.first = self.bracket()?;
        Ok(())
    }

    /// Measures until the uncertainty is at most `enough`, or `limit` has passed since the start. The result contains the
    /// uncertainty that was reached.
    pub fn measure(&self, enough: Ppm, limit: Nanos) -> Result<Rate, RateError> {
        let mut span = Nanos(limit.0.min(500_000.0));
        loop {
            self.wait(span)?;
            let rate = self.rate()?;
            if rate.uncertainty <= enough || span >= limit {
                return Ok(rate);
            }
            span = Nanos((span.0 * 2.0).min(limit.0));
        }
    }

    /// Reads the reference until `span` has passed since the start.
    fn wait(&self, span: Nanos) -> Result<(), RateError> {
        // A clock that has not moved in this many reads stands still. The fastest reads take 25 ms for them.
        const PATIENCE: u32 = 10_000_000;
        let mut still = 0;
        let mut last = self.reference.read();
        while (ticks_between(self.first.inside, last) as f64) < span.0 {
            let now = self.reference.read();
            still = if now == last { still + 1 } else { 0 };
            if still == PATIENCE {
                return Err(RateError::ReferenceStalled);
            }
            last = now;
        }
        Ok(())
    }
}

fn step<C: Clock, R: Clock>(clock: &C, reference: &R) -> Option<f64> {
    let start = reference.read();
    let mut blocks = 0;
    let go_on = || {
        blocks += 1;
        blocks < STEP_BLOCKS && (ticks_between(start, reference.read()) as f64) < STEP_TIME.0
    };
    granularity(clock, STEPS, go_on).step()
}

/// Measures the rate of `counter` against `reference`, which counts nanoseconds.
///
/// Stops when the uncertainty is at most `enough`, or when `limit` has passed. The result contains the uncertainty that was
/// reached.
pub fn measure_rate<C: Clock, R: Clock>(
    counter: C,
    reference: R,
    enough: Ppm,
    limit: Nanos,
) -> Result<Rate, RateError> {
    RateMeter::start(counter, reference)?.measure(enough, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Character, SimClock, World};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_uncertainty_contains_the_true_rate(
            seed in any::<u64>(),
            hz in 1e6..5e9f64,
            origin in any::<u64>(),
            step in 1u64..64,
            reference_step in 1u64..100,
            jitter_ns in 1u64..200,
            ms in 1.0..20.0f64,
        ) {
            let world = World::new(seed);
            let counter = SimClock::new(&world, Character { hz, origin, step, cost_ns: 9.0, jitter_ns, ..Character::default() });
            let reference = SimClock::new(&world, Character { step: reference_step, ..Character::default() });
            let got = measure_rate(&counter, &reference, Ppm(0.0), Nanos::from_millis(ms)).unwrap();
            let off = got.rate.ppm_from(Hertz(hz));
            prop_assert!(off.0.abs() <= got.uncertainty.0, "{off:?} beyond {:?}", got.uncertainty);
        }
    }

    #[test]
    fn it_measures_until_the_uncertainty_is_small_enough() {
        let world = World::new(3);
        let counter = SimClock::new(&world, Character { hz: 2.6e9, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let rate = measure_rate(&counter, &reference, Ppm(10.0), Nanos::from_secs(1.0)).unwrap();
        assert!(rate.uncertainty <= Ppm(10.0) && rate.over < Nanos::from_millis(40.0), "{rate:?}");
    }

    #[test]
    fn interrupted_brackets_do_not_spoil_the_rate() {
        let world = World::new(3);
        // Of the 200 first brackets, all but number 120 are interrupted for 1 ms: the second read of a bracket is late.
        let stalls = (0..200).filter(|n| *n != 120).map(|n| (2 * n + 1, 1e6)).collect();
        let counter = SimClock::new(&world, Character { stalls, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let meter = RateMeter::start_with(&counter, 1.0, &reference, 1.0).unwrap();
        assert!(meter.first.width < 200, "{:?}", meter.first);
        let rate = meter.measure(Ppm(0.0), Nanos::from_millis(400.0)).unwrap();
        assert!(rate.uncertainty <= Ppm(1.0), "{rate:?}");
    }

    #[test]
    fn clocks_that_stand_still_or_go_back_are_errors() {
        let world = World::new(3);
        let still = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let clean = SimClock::new(&world, Character::default());
        let limit = Nanos::from_millis(1.0);
        assert_eq!(measure_rate(&still, &clean, Ppm(1.0), limit), Err(RateError::CounterStalled));
        assert_eq!(measure_rate(&clean, &still, Ppm(1.0), limit), Err(RateError::ReferenceStalled));
        let back = SimClock::new(&world, Character { back: vec![(1500, 1 << 40)], ..Character::default() });
        let result = measure_rate(&back, &clean, Ppm(1.0), limit);
        assert_eq!(result, Err(RateError::WentBack));
    }
}
