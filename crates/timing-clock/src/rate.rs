//! The rate of a counter, with its uncertainty, from readings of two clocks at almost the same instant.

use crate::{Clock, Hertz, Nanos, Ppm, granularity, ticks_between};

/// A value that was read between two reads of a clock. The clock's value at that instant is known to within half the
/// width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket<T> {
    /// reading of the clock before the value was read, in ticks
    pub before: u64,
    /// the value
    pub inside: T,
    /// ticks from the first to the second read of the clock
    pub width: u64,
}

/// Number of attempts. At least one of this many is almost always uninterrupted. They take about 20 us with a fast clock
/// inside, and 0.3 ms with a timer chip.
const TRIES: u32 = 200;

impl<T> Bracket<T> {
    /// Returns the narrowest of 200 brackets. `None` if the clock went back in every one of them.
    ///
    /// The CPU may execute a plain counter read of `inside` before the first read of `clock` is complete. If `inside` reads
    /// a counter, use [`read_ordered`](Clock::read_ordered).
    pub fn narrowest<C: Clock>(clock: &C, mut inside: impl FnMut() -> T) -> Option<Bracket<T>> {
        let mut best: Option<Bracket<T>> = None;
        for _ in 0..TRIES {
            let before = clock.read_ordered();
            let inside = inside();
            let after = clock.read_ordered();
            if let Ok(width) = u64::try_from(ticks_between(before, after))
                && best.as_ref().is_none_or(|best| width < best.width)
            {
                best = Some(Bracket { before, inside, width });
            }
        }
        best
    }

    /// Returns the clock's ticks from the middle of this bracket to the middle of a later one.
    pub fn ticks_to(&self, later: &Bracket<T>) -> f64 {
        ticks_between(self.before, later.before) as f64 + later.half_width() - self.half_width()
    }

    /// Returns the maximum error, in ticks, of the clock's value at the instant of the inner read. The error that the
    /// clock's step causes is not included.
    pub fn half_width(&self) -> f64 {
        self.width as f64 / 2.0
    }
}

/// A rate with its maximum error.
///
/// A *bracket* reads the counter, the reference clock, and the counter again, in this order. So the counter's value at
/// the instant of the reference read lies between its two readings. The narrowest of many brackets is used, because
/// wide brackets were interrupted. Two brackets give the rate.
///
/// The uncertainty is an error in ticks, divided by the ticks between the brackets. The error is the sum of both
/// half-widths and of one step of each clock, because a reading can be late by up to one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// ticks of the counter per second of the reference: the mean over the measurement. Quartz crystals drift, so the
    /// present rate can differ from the mean of a long measurement by some ppm
    pub rate: Hertz,
    /// maximum error of `rate`, if the reference is exact. The skew of the CPUs is not included: if the thread moved to
    /// another CPU, it adds the skew divided by `duration`
    pub uncertainty: Ppm,
    /// duration of the measurement
    pub duration: Nanos,
}

/// The reason why no rate could be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The reference clock did not move, or it went back. A coarse reference moves only at its next step.
    #[error("the reference clock did not move")]
    ReferenceStalled,
    /// The counter did not move, but the reference did.
    #[error("the counter did not move")]
    CounterStalled,
    /// The counter went back.
    #[error("the counter went back")]
    WentBack,
    /// The measured rate is not between 1 Hz and 2^53 Hz, so it cannot be used for conversions.
    #[error("the counter's rate is out of range")]
    OutOfRange,
    /// The uncertainty of the measured rate is above 500 ppm, because the reference is coarse.
    #[error("the counter's rate is uncertain by more than 500 ppm")]
    Uncertain,
}

/// A running measurement of a counter's rate. The uncertainty decreases with its duration.
#[derive(Clone, Debug)]
pub struct RateMeter<C, R> {
    pub(crate) counter: C,
    reference: R,
    /// the measurement started with it
    pub(crate) first: Bracket<u64>,
    counter_step: f64,
    reference_step: f64,
}

/// Number of differences from which a clock's step is found. They take 0.1 ms.
const STEPS: usize = 1024;
/// Time limit for finding a step. A coarse clock needs this long.
const STEP_TIME: Nanos = Nanos::from_millis(50.0);
/// Maximum number of blocks of 256 reads for finding a step. It ends the search if the reference stands still.
const STEP_BLOCKS: u32 = 40_000;

impl<C: Clock, R: Clock> RateMeter<C, R> {
    /// Finds the steps of both clocks and reads the first bracket. `reference` must count nanoseconds.
    ///
    /// This takes 0.2 ms, or up to 0.1 s if a clock is coarse. It returns an error if a clock does not move, or if the
    /// counter goes back in each of 200 brackets.
    pub fn start(counter: C, reference: R) -> Result<Self, RateError> {
        let reference_step = step(&reference, &reference).ok_or(RateError::ReferenceStalled)?;
        let counter_step = step(&counter, &reference).ok_or(RateError::CounterStalled)?;
        let first = Bracket::narrowest(&counter, || reference.read()).ok_or(RateError::WentBack)?;
        Ok(RateMeter { counter, reference, first, counter_step, reference_step })
    }

    /// Returns the rate from the start until now. It returns an error if a clock did not move since the start, or went
    /// back.
    pub fn rate(&self) -> Result<Rate, RateError> {
        self.between(&self.first, &self.bracket()?)
    }

    /// Returns the rate between two brackets.
    pub(crate) fn between(&self, earlier: &Bracket<u64>, later: &Bracket<u64>) -> Result<Rate, RateError> {
        let nanos = ticks_between(earlier.inside, later.inside);
        if nanos <= 0 {
            return Err(RateError::ReferenceStalled);
        }
        let ticks = earlier.ticks_to(later);
        if ticks <= 0.0 {
            return Err(if ticks < 0.0 { RateError::WentBack } else { RateError::CounterStalled });
        }
        let rate = Hertz(ticks / nanos as f64 * 1e9);
        let error =
            earlier.half_width() + later.half_width() + self.counter_step + rate.ticks(Nanos(self.reference_step));
        Ok(Rate { rate, uncertainty: Ppm(error / ticks * 1e6), duration: Nanos(nanos as f64) })
    }

    pub(crate) fn bracket(&self) -> Result<Bracket<u64>, RateError> {
        Bracket::narrowest(&self.counter, || self.reference.read()).ok_or(RateError::WentBack)
    }

    /// Measures until the uncertainty is at most `target`, or until `limit` has passed since the start. It keeps the CPU
    /// busy. `limit` must be finite.
    pub fn measure(&self, target: Ppm, limit: Nanos) -> Result<Rate, RateError> {
        let mut span = Nanos(limit.0.min(500_000.0));
        loop {
            self.wait(span)?;
            let rate = self.rate()?;
            if rate.uncertainty <= target || span >= limit {
                return Ok(rate);
            }
            span = Nanos((span.0 * 2.0).min(limit.0));
        }
    }

    /// Reads the reference until `span` has passed since the start.
    fn wait(&self, span: Nanos) -> Result<(), RateError> {
        // A clock with the same value in this many reads stands still. They take at least 25 ms.
        const MAX_EQUAL_READS: u32 = 10_000_000;
        let mut equal_reads = 0;
        let mut last = self.reference.read();
        while (ticks_between(self.first.inside, last) as f64) < span.0 {
            let now = self.reference.read();
            equal_reads = if now == last { equal_reads + 1 } else { 0 };
            if equal_reads == MAX_EQUAL_READS {
                return Err(RateError::ReferenceStalled);
            }
            last = now;
        }
        Ok(())
    }
}

/// Returns the step of `clock` in its ticks. `None` if the clock does not move.
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
/// Stops when the uncertainty is at most `target`, or when `limit` has passed.
pub fn measure_rate(counter: impl Clock, reference: impl Clock, target: Ppm, limit: Nanos) -> Result<Rate, RateError> {
    RateMeter::start(counter, reference)?.measure(target, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock whose n-th read returns the n-th value.
    struct Scripted {
        values: Vec<u64>,
        next: Cell<usize>,
    }

    impl Clock for Scripted {
        fn read(&self) -> u64 {
            self.values[self.next.replace(self.next.get() + 1)]
        }
    }

    /// Returns the narrowest of 200 brackets with these widths. The value inside is the bracket's number.
    fn narrowest(width: impl Fn(u64) -> i64) -> Option<Bracket<u64>> {
        let values = (0..200u64).flat_map(|n| [n * 10_000, (n * 10_000).wrapping_add_signed(width(n))]).collect();
        let clock = Scripted { values, next: Cell::new(0) };
        let mut number = 0;
        Bracket::narrowest(&clock, || {
            number += 1;
            number - 1
        })
    }

    #[test]
    fn the_narrowest_bracket_is_returned_at_any_position() {
        for narrow in [0, 7, 199] {
            let found = narrowest(|n| if n == narrow { 30 } else { 40 + n as i64 });
            assert_eq!(found, Some(Bracket { before: narrow * 10_000, inside: narrow, width: 30 }));
        }
    }

    #[test]
    fn the_first_of_equally_narrow_brackets_is_returned() {
        assert_eq!(narrowest(|_| 30).map(|bracket| bracket.inside), Some(0));
    }

    #[test]
    fn brackets_with_a_backward_step_are_ignored() {
        let found = narrowest(|n| if n == 50 { 900 } else { -1 });
        assert_eq!(found.map(|bracket| (bracket.inside, bracket.width)), Some((50, 900)));
        assert_eq!(narrowest(|_| -1), None);
    }

    #[test]
    fn ticks_are_counted_from_middle_to_middle() {
        let first = Bracket { before: 100, inside: (), width: 20 };
        let later = Bracket { before: 1100, inside: (), width: 60 };
        assert_eq!((first.ticks_to(&later), first.half_width()), (1020.0, 10.0));
        assert_eq!(later.ticks_to(&first), -1020.0);
    }
}

#[cfg(test)]
mod rate_tests {
    use super::*;
    use crate::sim::{Character, SimClock, World};
    use proptest::prelude::*;

    proptest! {
        #[cfg_attr(miri, ignore = "an interpreter takes too long")]
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
            let measured = measure_rate(&counter, &reference, Ppm(0.0), Nanos::from_millis(ms)).unwrap();
            let error = measured.rate.ppm_from(Hertz(hz));
            prop_assert!(error.0.abs() <= measured.uncertainty.0, "{error:?} exceeds {:?}", measured.uncertainty);
        }
    }

    #[cfg_attr(miri, ignore = "an interpreter takes too long for millions of reads")]
    #[test]
    fn the_measurement_stops_at_the_target_uncertainty() {
        let world = World::new(3);
        let counter = SimClock::new(&world, Character { hz: 2.6e9, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let rate = measure_rate(&counter, &reference, Ppm(10.0), Nanos::from_secs(1.0)).unwrap();
        assert!(rate.uncertainty <= Ppm(10.0) && rate.duration < Nanos::from_millis(40.0), "{rate:?}");
    }

    /// Returns a meter of clocks whose steps are known.
    fn meter<C: Clock, R: Clock>(counter: C, counter_step: f64, reference: R, reference_step: f64) -> RateMeter<C, R> {
        let first = Bracket::narrowest(&counter, || reference.read()).unwrap();
        RateMeter { counter, reference, first, counter_step, reference_step }
    }

    #[cfg_attr(miri, ignore = "an interpreter takes too long for millions of reads")]
    #[test]
    fn interrupted_brackets_do_not_increase_the_uncertainty() {
        let world = World::new(3);
        // The first 200 brackets are interrupted for 1 ms before their second read, except for number 120.
        let stalls = (0..200).filter(|n| *n != 120).map(|n| (2 * n + 1, 1e6)).collect();
        let counter = SimClock::new(&world, Character { stalls, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let meter = meter(&counter, 1.0, &reference, 1.0);
        assert!(meter.first.width < 200, "{:?}", meter.first);
        let rate = meter.measure(Ppm(0.0), Nanos::from_millis(400.0)).unwrap();
        assert!(rate.uncertainty <= Ppm(1.0), "{rate:?}");
    }

    #[cfg_attr(miri, ignore = "an interpreter takes too long for millions of reads")]
    #[test]
    fn stopped_clocks_and_backward_steps_are_errors() {
        let world = World::new(3);
        let still = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let exact = SimClock::new(&world, Character::default());
        let limit = Nanos::from_millis(1.0);
        assert_eq!(measure_rate(&still, &exact, Ppm(1.0), limit), Err(RateError::CounterStalled));
        assert_eq!(measure_rate(&exact, &still, Ppm(1.0), limit), Err(RateError::ReferenceStalled));
        let back = SimClock::new(&world, Character { back: vec![(1500, 1 << 40)], ..Character::default() });
        let result = measure_rate(&back, &exact, Ppm(1.0), limit);
        assert_eq!(result, Err(RateError::WentBack));
    }

    /// Returns a nanosecond clock. Each read takes exactly 20 ns.
    fn regular(world: &World) -> SimClock<'_> {
        SimClock::new(world, Character { jitter_ns: 0, ..Character::default() })
    }

    #[cfg_attr(miri, ignore = "an interpreter takes too long for millions of reads")]
    #[test]
    fn a_reference_that_stops_after_the_start_is_an_error() {
        let world = World::new(3);
        let stopped = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let meter = meter(regular(&world), 1.0, &stopped, 1.0);
        assert_eq!(meter.measure(Ppm(1.0), Nanos::from_millis(1.0)), Err(RateError::ReferenceStalled));
        assert_eq!(meter.rate(), Err(RateError::ReferenceStalled));
    }

    #[test]
    fn a_counter_that_stops_after_the_start_is_an_error() {
        let world = World::new(3);
        let stopped = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let meter = meter(&stopped, 1.0, regular(&world), 1.0);
        assert_eq!(meter.rate(), Err(RateError::CounterStalled));
    }

    #[test]
    fn waiting_ends_with_the_read_that_reaches_the_span() {
        let world = World::new(3);
        let reference = regular(&world);
        let meter = meter(regular(&world), 1.0, &reference, 1.0);
        let before = reference.reads();
        let next = world.now_ns() + 10.0;
        meter.wait(Nanos(next - meter.first.inside as f64)).unwrap();
        assert_eq!(reference.reads(), before + 1);
    }

    #[test]
    fn the_uncertainty_is_both_half_widths_and_one_step_of_each_clock() {
        let world = World::new(3);
        let counter = SimClock::new(&world, Character { hz: 2e9, jitter_ns: 0, ..Character::default() });
        // A bracket takes 40 ns: half a read of the counter, a read of the reference, and half a read of the counter.
        let meter = meter(&counter, 8.0, regular(&world), 3.0);
        world.pass_ns(1e6);
        let rate = meter.rate().unwrap();
        let ticks = rate.duration.0 * 2.0;
        // In ticks: half of 80 for each bracket, 8 for the counter, and 3 ns for the reference.
        let expected = (40.0 + 40.0 + 8.0 + 6.0) / ticks * 1e6;
        assert!((rate.uncertainty.0 / expected - 1.0).abs() < 1e-6, "{rate:?} instead of {expected}");
        assert!(rate.rate.ppm_from(Hertz(2e9)).0.abs() < 1.0, "{rate:?}");
    }

    #[test]
    fn each_error_has_its_text() {
        assert_eq!(RateError::ReferenceStalled.to_string(), "the reference clock did not move");
        assert_eq!(RateError::CounterStalled.to_string(), "the counter did not move");
        assert_eq!(RateError::WentBack.to_string(), "the counter went back");
        assert_eq!(RateError::OutOfRange.to_string(), "the counter's rate is out of range");
    }

    /// qemu derives the counter from the host's clock, at exactly the rate that CNTFRQ states. A step of the counter is 1
    /// us, so a bracket can be 0 wide. The stated uncertainty must cover this.
    #[cfg(target_arch = "aarch64")]
    #[test]
    fn stated_uncertainty_covers_the_error() {
        let true_rate = crate::firmware_claim().unwrap().rate;
        let counter = crate::Counter::new().unwrap();
        let covered = (0..100)
            .filter(|_| {
                let reference = crate::Reference::default();
                let measured = measure_rate(counter, reference, Ppm(0.0), Nanos::from_millis(10.0)).unwrap();
                measured.rate.ppm_from(Hertz(true_rate.0)).0.abs() <= measured.uncertainty.0
            })
            .count();
        assert!(covered >= 95, "covered {covered} of 100");
    }
}
