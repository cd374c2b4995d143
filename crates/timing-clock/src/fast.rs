//! The clock a program holds: the cheap counter, in nanoseconds.

use crate::{
    Clock, Distrust, Features, KernelVerdict, Nanos, Ppm, Rate, RateMeter, Scale, counter, distrust, ticks_between,
};
use crate::{Counter, Reference};

/// An instant of a [`FastClock`]: worth something only beside another of the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(u64);

/// The counter of this CPU with its measured rate.
///
/// Reading it is [`now`](FastClock::now): the counter's instruction and nothing else (8 to 11 ns
/// where `clock_gettime` takes 20 to 30). Conversion to nanoseconds is left for later.
///
/// Two readings taken on different CPUs differ by the CPUs' skew too: nanoseconds where the kernel
/// trusts the counter, which [`new`](FastClock::new) insists on.
#[derive(Clone, Debug)]
pub struct FastClock {
    counter: Counter,
    scale: Scale,
    rate: Rate,
    meter: RateMeter<Counter, Reference>,
}

/// What [`FastClock::refresh`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refreshed {
    /// The rate held; it is now known better.
    Sharper,
    /// The rate is not what it was, by so much: a migration, or a suspend in which the counter
    /// stood still. It was measured anew; spans that reach across the change are wrong.
    Changed(Ppm),
}

/// What [`FastClock::new`] goes for: beyond 1 ppm, quartz itself is no better.
const ENOUGH: Ppm = Ppm(1.0);
/// Two crystals of one host wander apart by so much as they warm up: no change of the rate.
const WANDER: Ppm = Ppm(5.0);
/// How long [`FastClock::new`] measures at most. Reaches 1 to 3 ppm of stated uncertainty.
const LIMIT: Nanos = Nanos::from_millis(20.0);

impl FastClock {
    /// Measures the counter's rate, for some 20 ms, and refuses a counter that is not to be
    /// trusted: the first of the [reasons](Distrust) is the error.
    pub fn new() -> Result<FastClock, Distrust> {
        let permission = counter::permitted();
        let first = |rate: &Result<Rate, String>| {
            let kernel = KernelVerdict::of_this_host();
            distrust(&Features::of_this_cpu(), permission, kernel.as_ref(), rate).into_iter().next()
        };
        // Asked before the first read, which would kill where it is denied.
        if let Some(reason) = first(&Ok(Rate { rate: crate::NANOSECONDS, uncertainty: Ppm(0.0), over: Nanos(0.0) })) {
            return Err(reason);
        }
        let counter = Counter::new().map_err(Distrust::Refused)?;
        let unknown = |why: &dyn core::fmt::Display| Distrust::RateUnknown(why.to_string());
        let meter = RateMeter::start(counter, Reference::default()).map_err(|e| unknown(&e))?;
        let rate = meter.measure(ENOUGH, LIMIT).map_err(|e| unknown(&e))?;
        let scale = Scale::from_rate(rate.rate).ok_or_else(|| unknown(&"out of range"))?;
        Ok(FastClock { counter, scale, rate, meter })
    }

    /// This instant.
    #[inline(always)]
    pub fn now(&self) -> Moment {
        Moment(self.counter.read())
    }

    /// Nanoseconds from `earlier` to `later`; negative when they are the other way round.
    #[inline]
    pub fn nanos(&self, earlier: Moment, later: Moment) -> i64 {
        self.scale.signed_nanos(ticks_between(earlier.0, later.0))
    }

    /// Nanoseconds since `earlier`.
    #[inline]
    pub fn elapsed_nanos(&self, earlier: Moment) -> i64 {
        self.nanos(earlier, self.now())
    }

    /// The rate that conversions use, with its uncertainty.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Measures the rate again over the whole time since the clock was made, which takes some
    /// 20 us and divides the uncertainty by the time gone by, and sees whether it held. A program
    /// that lives long calls this every few seconds.
    pub fn refresh(&mut self) -> Result<Refreshed, Distrust> {
        let unknown = |why: &dyn core::fmt::Display| Distrust::RateUnknown(why.to_string());
        let whole = self.meter.rate().map_err(|e| unknown(&e))?;
        let off = whole.rate.ppm_from(self.rate.rate);
        if off.0.abs() <= (self.rate.uncertainty.0 + whole.uncertainty.0).max(WANDER.0) {
            if whole.uncertainty < self.rate.uncertainty {
                self.adopt(whole)?;
            }
            return Ok(Refreshed::Sharper);
        }
        self.meter.restart().map_err(|e| unknown(&e))?;
        let anew = self.meter.measure(ENOUGH, LIMIT).map_err(|e| unknown(&e))?;
        self.adopt(anew)?;
        Ok(Refreshed::Changed(off))
    }

    fn adopt(&mut self, rate: Rate) -> Result<(), Distrust> {
        self.scale = Scale::from_rate(rate.rate).ok_or_else(|| Distrust::RateUnknown("out of range".into()))?;
        self.rate = rate;
        Ok(())
    }
}
