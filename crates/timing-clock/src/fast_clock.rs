//! The clock for programs: the CPU's counter, converted to nanoseconds.

use crate::{
    Bracket, Clock, ClockSources, Counter, Distrust, Features, Nanos, Ppm, Rate, RateError, RateMeter, Reference,
    Scale, counter, distrust, ticks_between, trust,
};

/// A reading of a [`FastClock`]. Only differences between readings of the same clock have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(u64);

/// The counter of this CPU with its measured rate.
///
/// [`now`](FastClock::now) only executes the counter's read instruction. On the hosts that we measured, it takes 8 to 25
/// ns; `clock_gettime` takes 20 to 50 ns. [`nanos`](FastClock::nanos) converts readings later.
///
/// # What to know
///
/// * The CPU may read the counter before earlier instructions have executed. So a span of some nanoseconds says nothing.
/// * Readings from different CPUs also differ by the CPUs' skew, usually by less than 100 ns. A span between two CPUs can
///   even be negative. [`new`](FastClock::new) refuses a counter that the kernel does not trust.
/// * The reference is [`Reference`](crate::Reference), which NTP does not adjust. `std::time::Instant` is adjusted by NTP,
///   so its seconds can differ by up to 500 ppm: more than the [uncertainty](Rate::uncertainty).
/// * If the kernel's clock source is the counter itself, a counter with another rate after a migration also changes the
///   kernel's clocks. No comparison on this host shows that.
/// * Without sysfs (FreeBSD, macOS, some containers) the kernel's opinion is not known, and not required.
#[derive(Clone, Debug)]
pub struct FastClock(Rated<Counter, Reference>);

/// The result of [`FastClock::refresh`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "after a change, time spans that began before it are wrong"]
#[non_exhaustive]
pub enum Refreshed {
    /// The counter still has its rate, within the errors and the drift of quartz crystals (5 ppm). The uncertainty is
    /// smaller than before, or the same.
    Unchanged,
    /// Since the last call the counter's rate changed, or the counter or the reference jumped: a migration, a suspend, or
    /// another clock source of the kernel. The clock has measured the new rate. Do not use a time span that began before
    /// this call.
    Changed {
        /// rate before the change
        old: Rate,
        /// rate after the change
        new: Rate,
    },
}

/// Target uncertainty of [`FastClock::new`]. Quartz crystals have errors of 1 ppm or more, so a smaller target is
/// useless.
const TARGET: Ppm = Ppm(1.0);
/// Maximum drift of two crystals of a host while they warm up. It does not count as a change of the rate.
const MAX_DRIFT: Ppm = Ppm(5.0);
/// Maximum measuring time of [`FastClock::new`].
const TIME_LIMIT: Nanos = Nanos::from_millis(20.0);
/// Minimum time between two brackets that are compared with the known rate. The skew of two CPUs, about 100 ns, is then at
/// most 1 ppm.
const MIN_INTERVAL: Nanos = Nanos::from_millis(100.0);

impl FastClock {
    /// Measures the counter's rate. This keeps the CPU busy for about 20 ms.
    ///
    /// The [uncertainty](FastClock::rate) is 1 to 3 ppm if the kernel's clock is fast. With a timer chip as the kernel's
    /// clock source it is about 100 ppm, and with a clock that moves once per kernel tick it is useless: check it.
    ///
    /// Returns an error if the counter cannot be trusted: the first of the [reasons](Distrust).
    pub fn new() -> Result<FastClock, Distrust> {
        // Check before the first read: if the counter is denied, a read ends the process.
        let kernel = ClockSources::of_this_host();
        let reasons = distrust(&Features::of_this_cpu(), counter::permitted(), kernel.as_ref());
        if let Some(reason) = reasons.into_iter().next() {
            return Err(reason);
        }
        let counter = Counter::new().map_err(Distrust::Refused)?;
        let rated = Rated::measure(counter, Reference::default()).map_err(Distrust::RateUnknown)?;
        Ok(FastClock(rated))
    }

    /// Returns the current reading.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.0.meter.counter.read())
    }

    /// Returns the nanoseconds from `earlier` to `later`. They are negative if `later` comes first, and can be slightly
    /// negative if the readings are from different CPUs.
    #[inline]
    #[must_use]
    pub fn nanos(&self, earlier: Moment, later: Moment) -> i64 {
        self.0.scale.signed_nanos(ticks_between(earlier.0, later.0))
    }

    /// Returns the nanoseconds since the counter's zero. The CPU reads it after the instructions before it.
    #[inline(always)]
    pub(crate) fn nanos_since_zero(&self) -> u64 {
        self.0.scale.nanos(self.0.meter.counter.read_ordered())
    }

    /// Returns the rate that conversions use, with its uncertainty relative to the reference.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.rate
    }

    /// Measures the rate again, and checks whether it changed: over the time since the last call, and over the whole time
    /// since the clock was created. Calls in the same tenth of a second count as one.
    ///
    /// This takes about 50 us. If the rate changed, a new measurement begins, which takes up to 20 ms. The longer the
    /// whole time, the smaller the uncertainty. A long-running program should call this method every few seconds.
    ///
    /// Returns an error if the kernel no longer trusts the counter, or if no rate can be measured. The clock then keeps
    /// its rate, but should not be used.
    pub fn refresh(&mut self) -> Result<Refreshed, Distrust> {
        if let Some(reason) = ClockSources::of_this_host().as_ref().and_then(trust::demoted) {
            return Err(reason);
        }
        self.0.refresh().map_err(Distrust::RateUnknown)
    }
}

/// A counter's rate against a reference, and the conversion with this rate.
#[derive(Clone, Debug)]
struct Rated<C, R> {
    scale: Scale,
    rate: Rate,
    meter: RateMeter<C, R>,
    /// the last bracket that was compared with the rate
    last: Bracket<u64>,
}

impl<C: Clock, R: Clock> Rated<C, R> {
    fn measure(counter: C, reference: R) -> Result<Self, RateError> {
        let meter = RateMeter::start(counter, reference)?;
        let rate = meter.measure(TARGET, TIME_LIMIT)?;
        Ok(Rated { scale: scale(rate)?, rate, last: meter.first, meter })
    }

    fn refresh(&mut self) -> Result<Refreshed, RateError> {
        let now = self.meter.bracket()?;
        let whole = self.meter.between(&self.meter.first, &now);
        if whole == Err(RateError::ReferenceStalled) {
            return Err(RateError::ReferenceStalled);
        }
        // The mean over the whole time hides a change if the clock has run for long.
        if !self.agrees(whole) || !self.recent_agrees(&now) {
            return self.measure_again();
        }
        if let Ok(whole) = whole
            && whole.uncertainty < self.rate.uncertainty
        {
            self.set(whole)?;
        }
        Ok(Refreshed::Unchanged)
    }

    /// Returns whether the rate since the last comparison agrees with the known rate.
    fn recent_agrees(&mut self, now: &Bracket<u64>) -> bool {
        let passed = ticks_between(self.last.inside, now.inside);
        if (0..MIN_INTERVAL.0 as i64).contains(&passed) {
            return true;
        }
        let recent = self.meter.between(&self.last, now);
        self.last = *now;
        self.agrees(recent)
    }

    fn agrees(&self, rate: Result<Rate, RateError>) -> bool {
        rate.is_ok_and(|rate| {
            let difference = rate.rate.ppm_from(self.rate.rate);
            difference.0.abs() <= (self.rate.uncertainty.0 + rate.uncertainty.0).max(MAX_DRIFT.0)
        })
    }

    fn measure_again(&mut self) -> Result<Refreshed, RateError> {
        let old = self.rate;
        self.meter.first = self.meter.bracket()?;
        self.last = self.meter.first;
        let new = self.meter.measure(TARGET, TIME_LIMIT)?;
        self.set(new)?;
        Ok(Refreshed::Changed { old, new })
    }

    fn set(&mut self, rate: Rate) -> Result<(), RateError> {
        (self.scale, self.rate) = (scale(rate)?, rate);
        Ok(())
    }
}

fn scale(rate: Rate) -> Result<Scale, RateError> {
    Scale::from_rate(rate.rate).ok_or(RateError::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hertz;
    use crate::sim::{Character, SimClock, World};
    use std::cell::Cell;

    const HZ: f64 = 2.6e9;

    /// A counter that can jump ahead or back. A reference that stands still during a suspend has the same effect as a jump
    /// ahead.
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
        assert!(matches!(rated.refresh(), Ok(Refreshed::Changed { .. })));
        assert!(is_correct(&rated), "{:?}", rated.rate);
    }

    #[test]
    fn refresh_ignores_the_drift_of_crystals_that_warm_up() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        world.pass_ns(1e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
        world.pass_ns(1e9);
        // The counter jumps ahead by 4 ppm of the last second.
        ahead.set((HZ * 4e-6) as u64);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
    }

    /// In 30 days, a jump of 10 s changes the mean rate by less than the drift of crystals.
    #[test]
    fn refresh_detects_a_change_after_a_long_time() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        world.pass_ns(30.0 * 86_400e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
        world.pass_ns(5e9);
        ahead.set((HZ * 10.0) as u64);
        assert!(matches!(rated.refresh(), Ok(Refreshed::Changed { .. })));
        assert!(is_correct(&rated), "{:?}", rated.rate);
        world.pass_ns(5e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
    }

    /// Some machines reset the counter in a suspend.
    #[test]
    fn refresh_measures_again_after_the_counter_went_back() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        world.pass_ns(3600e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
        world.pass_ns(1e9);
        ahead.set(0u64.wrapping_sub((HZ * 3600.0) as u64));
        let old = rated.rate;
        assert_eq!(rated.refresh(), Ok(Refreshed::Changed { old, new: rated.rate }));
        assert!(is_correct(&rated), "{:?}", rated.rate);
    }

    #[test]
    fn skew_between_two_early_calls_is_no_change() {
        let (world, ahead) = (World::new(5), Cell::new(0));
        let mut rated = rated(&world, &ahead, 1);
        world.pass_ns(10e9);
        assert_eq!(rated.refresh(), Ok(Refreshed::Unchanged));
        world.pass_ns(100e3);
        // The thread moved to a CPU whose counter is ahead by 100 ns: 1000 ppm of the time since the last call.
        ahead.set((HZ * 100e-9) as u64);
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
        assert!(matches!(result, Refreshed::Changed { .. }), "{result:?}");
    }

    /// A clock of this host. Each 2 ticks are 5 ns.
    fn fast_clock() -> FastClock {
        let counter = Counter::new().unwrap();
        let mut rated = Rated::measure(counter, Reference::default()).unwrap();
        rated.scale = Scale::from_rate(Hertz(4e8)).unwrap();
        FastClock(rated)
    }

    #[test]
    fn threads_can_share_a_clock() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<FastClock>();
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
        let earlier = Moment(clock.0.meter.counter.read().wrapping_sub(1 << 40));
        let elapsed = clock.nanos(earlier, clock.now());
        assert!(((5 << 39)..(5 << 40)).contains(&elapsed), "{elapsed}");
    }
}
