//! The clock for programs: the CPU's counter, converted to nanoseconds.

use crate::{
    Clock, Counter, Distrust, Features, KernelVerdict, Nanos, Ppm, Rate, RateMeter, Reference, Scale, counter,
    distrust, ticks_between,
};

/// A reading of a [`FastClock`]. Only differences between readings of the same clock have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(u64);

/// The counter of this CPU with its measured rate.
///
/// [`now`](FastClock::now) only executes the counter's read instruction. It takes 8 to 11 ns; `clock_gettime` takes 20
/// to 30 ns. [`nanos`](FastClock::nanos) converts readings later.
///
/// Readings from different CPUs also differ by the CPUs' skew. If the kernel trusts the counter, the skew is some
/// nanoseconds. [`new`](FastClock::new) refuses a counter that the kernel does not trust.
#[derive(Clone, Debug)]
pub struct FastClock {
    counter: Counter,
    rated: Rated<Counter, Reference>,
}

/// The result of [`FastClock::refresh`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refreshed {
    /// The rate is the same as before, within the errors. Its uncertainty is smaller than before, or the same.
    Unchanged,
    /// The rate differs from the last one by this much, because of a migration or a suspend. The clock has measured its
    /// rate again. Time spans that include the change are wrong.
    Changed(Ppm),
}

/// Target uncertainty of [`FastClock::new`]. Quartz crystals have errors of 1 ppm or more, so a smaller target is
/// useless.
const TARGET: Ppm = Ppm(1.0);
/// Maximum drift of two crystals of a host while they warm up. It does not count as a change of the rate.
const MAX_DRIFT: Ppm = Ppm(5.0);
/// Maximum measuring time of [`FastClock::new`]. It gives an uncertainty of 1 to 3 ppm.
const TIME_LIMIT: Nanos = Nanos::from_millis(20.0);

impl FastClock {
    /// Measures the counter's rate for about 20 ms.
    ///
    /// Returns an error if the counter cannot be trusted: the first of the [reasons](Distrust).
    pub fn new() -> Result<FastClock, Distrust> {
        let permission = counter::permitted();
        let first = |rate: &Result<Rate, String>| {
            let kernel = KernelVerdict::of_this_host();
            distrust(&Features::of_this_cpu(), permission, kernel.as_ref(), rate).into_iter().next()
        };
        // Check before the first read: if the counter is denied, a read ends the process.
        if let Some(reason) = first(&Ok(Rate { rate: crate::NANOSECONDS, uncertainty: Ppm(0.0), duration: Nanos(0.0) }))
        {
            return Err(reason);
        }
        let counter = Counter::new().map_err(Distrust::Refused)?;
        Ok(FastClock { counter, rated: Rated::measure(counter, Reference::default())? })
    }

    /// Returns the current reading.
    #[inline(always)]
    pub fn now(&self) -> Moment {
        Moment(self.counter.read())
    }

    /// Returns the nanoseconds from `earlier` to `later`. They are negative if `later` comes first.
    #[inline]
    pub fn nanos(&self, earlier: Moment, later: Moment) -> i64 {
        self.rated.scale.signed_nanos(ticks_between(earlier.0, later.0))
    }

    /// Returns the nanoseconds since `earlier`.
    #[inline]
    pub fn elapsed_nanos(&self, earlier: Moment) -> i64 {
        self.nanos(earlier, self.now())
    }

    /// Returns the rate that conversions use, with its uncertainty.
    pub fn rate(&self) -> Rate {
        self.rated.rate
    }

    /// Measures the rate again, over the whole time since the clock was created, and checks whether the rate changed.
    ///
    /// This takes about 20 us. If the rate changed, a new measurement begins, which takes up to 20 ms. The longer the
    /// whole time, the smaller the uncertainty. A long-running program should call this method every few seconds.
    pub fn refresh(&mut self) -> Result<Refreshed, Distrust> {
        self.rated.refresh()
    }
}

/// A counter's rate against a reference, and the conversion with this rate.
#[derive(Clone, Debug)]
struct Rated<C, R> {
    scale: Scale,
    rate: Rate,
    meter: RateMeter<C, R>,
}

impl<C: Clock, R: Clock> Rated<C, R> {
    fn measure(counter: C, reference: R) -> Result<Self, Distrust> {
        let meter = RateMeter::start(counter, reference).map_err(rate_unknown)?;
        let rate = meter.measure(TARGET, TIME_LIMIT).map_err(rate_unknown)?;
        Ok(Rated { scale: scale(rate)?, rate, meter })
    }

    fn refresh(&mut self) -> Result<Refreshed, Distrust> {
        let whole = self.meter.rate().map_err(rate_unknown)?;
        let difference = whole.rate.ppm_from(self.rate.rate);
        if difference.0.abs() <= (self.rate.uncertainty.0 + whole.uncertainty.0).max(MAX_DRIFT.0) {
            if whole.uncertainty < self.rate.uncertainty {
                self.set(whole)?;
            }
            return Ok(Refreshed::Unchanged);
        }
        self.meter.restart().map_err(rate_unknown)?;
        let new = self.meter.measure(TARGET, TIME_LIMIT).map_err(rate_unknown)?;
        self.set(new)?;
        Ok(Refreshed::Changed(difference))
    }

    fn set(&mut self, rate: Rate) -> Result<(), Distrust> {
        self.scale = scale(rate)?;
        self.rate = rate;
        Ok(())
    }
}

fn rate_unknown(why: impl core::fmt::Display) -> Distrust {
    Distrust::RateUnknown(why.to_string())
}

fn scale(rate: Rate) -> Result<Scale, Distrust> {
    Scale::from_rate(rate.rate).ok_or_else(|| rate_unknown("out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hertz;
    use crate::sim::{Character, SimClock, World};
    use std::cell::Cell;

    const HZ: f64 = 2.6e9;

    /// A counter that can jump ahead. A reference that stands still during a suspend has the same effect.
    struct Jumping<'a> {
        clock: SimClock<'a>,
        ahead: &'a Cell<u64>,
    }

    impl Clock for Jumping<'_> {
        fn read(&self) -> u64 {
            self.clock.read().wrapping_add(self.ahead.get())
        }
    }

    fn rated<'a>(world: &'a World, ahead: &'a Cell<u64>, reference_step: u64) -> Rated<Jumping<'a>, SimClock<'a>> {
        let clock = SimClock::new(world, Character { hz: HZ, ..Character::default() });
        let reference = Character { step: reference_step, ..Character::default() };
        Rated::measure(Jumping { clock, ahead }, SimClock::new(world, reference)).unwrap()
    }

    fn is_correct(rated: &Rated<Jumping, SimClock>) -> bool {
        let one_second = rated.scale.nanos(HZ as u64) as f64;
        rated.rate.rate.ppm_from(Hertz(HZ)).0.abs() <= rated.rate.uncertainty.0
            && (one_second - 1e9).abs() <= rated.rate.uncertainty.0 * 1e3 + 1.0
    }

    #[test]
    fn refresh_reduces_the_uncertainty_while_the_rate_is_unchanged() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        let before = rated.rate.uncertainty;
        world.pass_ns(1e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
        assert!(rated.rate.uncertainty.0 < before.0 / 10.0 && is_correct(&rated), "{:?}", rated.rate);
    }

    #[test]
    fn refresh_detects_a_changed_rate_and_measures_again() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        world.pass_ns(1e9);
        // The counter jumps ahead by 0.1 s within about 1 s.
        ahead.set((HZ / 10.0) as u64);
        let Ok(Refreshed::Changed(Ppm(ppm))) = rated.refresh() else { panic!("the change was not detected") };
        assert!((90_000.0..101_000.0).contains(&ppm), "{ppm}");
        assert!(is_correct(&rated), "{:?}", rated.rate);
    }

    #[test]
    fn refresh_ignores_the_drift_of_crystals_that_warm_up() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        world.pass_ns(1e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
        world.pass_ns(1e9);
        // The counter jumps ahead by 4 ppm of 2 s.
        ahead.set((HZ * 2.0 * 4e-6) as u64);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
    }

    /// Measures for 20 ms, then lets the counter jump ahead, and measures again at once. Returns the result and the sum
    /// of both uncertainties in ppm.
    fn refresh_after_jump(reference_step: u64, jump_ppm: f64) -> (Refreshed, f64) {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, reference_step);
        let ticks = rated.rate.duration.secs() * HZ;
        ahead.set((ticks * jump_ppm / 1e6) as u64);
        (rated.refresh().unwrap(), 2.0 * rated.rate.uncertainty.0)
    }

    #[test]
    fn refresh_allows_the_sum_of_both_uncertainties() {
        // Steps of 1 us in 20 ms: about 50 ppm for each measurement.
        let (result, uncertainty) = refresh_after_jump(1000, 75.0);
        assert!((90.0..110.0).contains(&uncertainty), "{uncertainty}");
        assert_eq!(result, Refreshed::Unchanged);
        let (result, _) = refresh_after_jump(1000, 200.0);
        assert!(matches!(result, Refreshed::Changed(_)), "{result:?}");
    }

    /// A clock of this host. Each 2 ticks are 5 ns.
    fn fast_clock() -> FastClock {
        let counter = Counter::new().unwrap();
        let mut rated = Rated::measure(counter, Reference::default()).unwrap();
        rated.scale = Scale::from_ratio(2, 5).unwrap();
        FastClock { counter, rated }
    }

    #[test]
    fn readings_convert_to_nanoseconds() {
        let clock = fast_clock();
        assert_eq!(clock.nanos(Moment(10), Moment(30)), 50);
        assert_eq!(clock.nanos(Moment(30), Moment(10)), -50);
    }

    #[test]
    fn elapsed_time_ends_now() {
        let clock = fast_clock();
        let earlier = Moment(clock.counter.read().wrapping_sub(1 << 40));
        let elapsed = clock.elapsed_nanos(earlier);
        assert!(((5 << 39)..(5 << 40)).contains(&elapsed), "{elapsed}");
    }
}
