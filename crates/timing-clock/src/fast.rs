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
/// [`now`](FastClock::now) executes the counter's read instruction and nothing else. It takes 8 to 11 ns, where
/// `clock_gettime` takes 20 to 30 ns. The conversion to nanoseconds comes later.
///
/// Readings from different CPUs also differ by the CPUs' skew. That is nanoseconds where the kernel trusts the counter.
/// [`new`](FastClock::new) refuses a counter that the kernel does not trust.
#[derive(Clone, Debug)]
pub struct FastClock {
    counter: Counter,
    rated: Rated<Counter, Reference>,
}

/// The result of [`FastClock::refresh`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refreshed {
    /// The rate is unchanged. Its uncertainty is now smaller, or at least no larger.
    Sharper,
    /// The rate differs from the last one by this much. The reason is a migration, or a suspend during which the counter
    /// stood still. The rate was measured again. Spans across the change are wrong.
    Changed(Ppm),
}

/// The target uncertainty of [`FastClock::new`]. Quartz crystals are no better than 1 ppm.
const ENOUGH: Ppm = Ppm(1.0);
/// Two crystals of a host may drift apart this much when they warm up. This is no change of the rate.
const WANDER: Ppm = Ppm(5.0);
/// The longest measuring time of [`FastClock::new`]. It gives an uncertainty of 1 to 3 ppm.
const LIMIT: Nanos = Nanos::from_millis(20.0);

impl FastClock {
    /// Measures the counter's rate for about 20 ms.
    ///
    /// Refuses a counter that cannot be trusted. The error is the first of the [reasons](Distrust).
    pub fn new() -> Result<FastClock, Distrust> {
        let permission = counter::permitted();
        let first = |rate: &Result<Rate, String>| {
            let kernel = KernelVerdict::of_this_host();
            distrust(&Features::of_this_cpu(), permission, kernel.as_ref(), rate).into_iter().next()
        };
        // Check before the first read: it ends the process where the counter is denied.
        if let Some(reason) = first(&Ok(Rate { rate: crate::NANOSECONDS, uncertainty: Ppm(0.0), over: Nanos(0.0) })) {
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

    /// Measures the rate again, over the whole time since the clock was created, and checks whether it changed.
    ///
    /// This takes about 20 us. The uncertainty shrinks with the time since the creation. A long-running program should
    /// call it every few seconds.
    pub fn refresh(&mut self) -> Result<Refreshed, Distrust> {
        self.rated.refresh()
    }
}

/// A counter's rate against a reference, and the conversion by it.
#[derive(Clone, Debug)]
struct Rated<C, R> {
    scale: Scale,
    rate: Rate,
    meter: RateMeter<C, R>,
}

impl<C: Clock, R: Clock> Rated<C, R> {
    fn measure(counter: C, reference: R) -> Result<Self, Distrust> {
        let meter = RateMeter::start(counter, reference).map_err(rate_unknown)?;
        let rate = meter.measure(ENOUGH, LIMIT).map_err(rate_unknown)?;
        Ok(Rated { scale: scale(rate)?, rate, meter })
    }

    fn refresh(&mut self) -> Result<Refreshed, Distrust> {
        let whole = self.meter.rate().map_err(rate_unknown)?;
        let difference = whole.rate.ppm_from(self.rate.rate);
        if difference.0.abs() <= (self.rate.uncertainty.0 + whole.uncertainty.0).max(WANDER.0) {
            if whole.uncertainty < self.rate.uncertainty {
                self.set(whole)?;
            }
            return Ok(Refreshed::Sharper);
        }
        self.meter.restart().map_err(rate_unknown)?;
        let new = self.meter.measure(ENOUGH, LIMIT).map_err(rate_unknown)?;
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

    /// A counter that can jump ahead, as a counter does against a reference that stood still in a suspend.
    struct Jumping<'a> {
        clock: SimClock<'a>,
        ahead: &'a Cell<u64>,
    }

    impl Clock for Jumping<'_> {
        fn read(&self) -> u64 {
            self.clock.read().wrapping_add(self.ahead.get())
        }
    }

    fn rated<'a>(world: &'a World, ahead: &'a Cell<u64>) -> Rated<Jumping<'a>, SimClock<'a>> {
        let clock = SimClock::new(world, Character { hz: HZ, ..Character::default() });
        Rated::measure(Jumping { clock, ahead }, SimClock::new(world, Character::default())).unwrap()
    }

    fn is_true(rated: &Rated<Jumping, SimClock>) -> bool {
        let one_second = rated.scale.nanos(HZ as u64) as f64;
        rated.rate.rate.ppm_from(Hertz(HZ)).0.abs() <= rated.rate.uncertainty.0
            && (one_second - 1e9).abs() <= rated.rate.uncertainty.0 * 1e3 + 1.0
    }

    #[test]
    fn refresh_reduces_the_uncertainty_while_the_rate_is_unchanged() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead);
        let before = rated.rate.uncertainty;
        world.pass_ns(1e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Sharper));
        assert!(rated.rate.uncertainty.0 < before.0 / 10.0 && is_true(&rated), "{:?}", rated.rate);
    }

    #[test]
    fn refresh_notices_a_changed_rate_and_measures_again() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead);
        world.pass_ns(1e9);
        // A tenth of a second within about a second.
        ahead.set((HZ / 10.0) as u64);
        let Ok(Refreshed::Changed(Ppm(ppm))) = rated.refresh() else { panic!("the change was not noticed") };
        assert!((90_000.0..101_000.0).contains(&ppm), "{ppm}");
        assert!(is_true(&rated), "{:?}", rated.rate);
    }

    #[test]
    fn refresh_ignores_two_crystals_that_warm_up() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead);
        world.pass_ns(1e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Sharper));
        world.pass_ns(1e9);
        // 4 ppm of two seconds.
        ahead.set((HZ * 2.0 * 4e-6) as u64);
        assert_eq!(rated.refresh(), Ok(Refreshed::Sharper));
    }
}
