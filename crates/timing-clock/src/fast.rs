//! [`Instant`]: the interface of `std::time::Instant`, on the CPU's counter.

use crate::{Clock, Distrust, FastClock, Ppm, Rate, RateError, System};
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::sync::OnceLock;
use std::time::Duration;

/// A replacement of `std::time::Instant`.
///
/// ```
/// use timing_clock::fast::Instant; // instead of std::time::Instant
///
/// let start = Instant::now();
/// println!("{:?}", start.elapsed());
/// ```
///
/// It reads the CPU's counter. If the counter cannot be trusted, or its rate is uncertain by more than 500 ppm, it reads the
/// system's clock: [`rate`] says which. The first call in a process measures the rate, which takes 20 ms. Then the rate stays the same.
///
/// # What to know
///
/// * A suspend, and a virtual machine that is moved or restored, can change the counter or its rate. An `Instant` does not
///   notice that, nor that the kernel no longer trusts the counter. A program that must know it uses [`FastClock::refresh`].
/// * Apart from that, time does not go back, also between threads, if the CPUs' counters agree. A read waits for earlier
///   instructions ([`Clock::read_ordered`]), so an instant that one thread received from another is never after its own next one.
/// * The wait takes most of the time. If the kernel's own clock source is the counter, `std` needs as long, because it waits,
///   too. [`FastClock`] needs half as long and does not wait: use it within one thread.
/// * NTP adjusts `std::time::Instant` by up to 500 ppm, but not the counter.
/// * A thread that may not read the counter ([`permitted`](crate::counter::permitted)) ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(
    /// nanoseconds since the clock's zero, at most 292 years
    i64,
);

/// The counter with its rate, as the first call in this process found it.
static CLOCK: OnceLock<Result<FastClock, Distrust>> = OnceLock::new();

/// NTP adjusts the system's clock by at most this, so a counter with a larger error is worse.
const MOST_UNCERTAIN: Ppm = Ppm(500.0);

fn clock() -> &'static Result<FastClock, Distrust> {
    CLOCK.get_or_init(|| {
        let clock = FastClock::new()?;
        let is_known = clock.rate().uncertainty.0 <= MOST_UNCERTAIN.0;
        is_known.then_some(clock).ok_or(Distrust::RateUnknown(RateError::Uncertain))
    })
}

/// Returns the counter's rate with its uncertainty, or the reason why [`Instant`] reads the system's clock. Call it when the
/// program starts: then the rate is measured there, and not at the first reading.
pub fn rate() -> Result<Rate, Distrust> {
    clock().as_ref().map(FastClock::rate).map_err(Clone::clone)
}

impl Instant {
    /// Returns the current time.
    #[inline]
    #[must_use]
    pub fn now() -> Instant {
        match clock() {
            Ok(clock) => Instant(clock.nanos_since_zero() as i64),
            Err(_) => Instant(System::default().read() as i64),
        }
    }

    /// Returns the time since this instant.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Instant::now() - *self
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// Does the same as [`duration_since`](Instant::duration_since).
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }

    /// Returns the time from `earlier` to this instant. `None` if `earlier` is later.
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        (self.0 >= earlier.0).then(|| Duration::from_nanos(self.0.abs_diff(earlier.0)))
    }

    /// Returns the instant after `duration`. `None` if it is more than 292 years from the clock's zero.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(i64::try_from(duration.as_nanos()).ok()?).map(Instant)
    }

    /// Returns the instant before `duration`. `None` if it is more than 292 years from the clock's zero.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(i64::try_from(duration.as_nanos()).ok()?).map(Instant)
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Panics if the result cannot be represented, as `std::time::Instant` does.
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).expect("overflow when adding a duration to an instant")
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// Panics if the result cannot be represented, as `std::time::Instant` does.
    fn sub(self, duration: Duration) -> Instant {
        self.checked_sub(duration).expect("overflow when subtracting a duration from an instant")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn arithmetic_is_that_of_std() {
        let (early, late) = (Instant(5_000_000_000), Instant(7_000_000_001));
        assert_eq!(late - early, Duration::from_nanos(2_000_000_001));
        assert_eq!((early - late, early.duration_since(late)), (Duration::ZERO, Duration::ZERO));
        assert_eq!(
            (early.checked_duration_since(late), late.checked_duration_since(late)),
            (None, Some(Duration::ZERO))
        );
        assert_eq!((early + SECOND, early - SECOND), (Instant(6_000_000_000), Instant(4_000_000_000)));
        let mut moved = early;
        moved += SECOND;
        moved -= 2 * SECOND;
        assert!(moved < early && moved == Instant(4_000_000_000));
        // Also before the clock's zero, as a program does that looks back an hour after the machine has started.
        assert_eq!(early - 3600 * SECOND + 3600 * SECOND, early);
        assert_eq!((early.checked_sub(Duration::MAX), early.checked_add(Duration::MAX)), (None, None));
        assert_eq!(
            (Instant(i64::MAX).checked_add(Duration::from_nanos(1)), Instant(i64::MIN).checked_sub(SECOND)),
            (None, None)
        );
        assert_eq!(Instant(i64::MAX) - Instant(i64::MIN), Duration::from_nanos(u64::MAX));
    }

    #[test]
    #[should_panic(expected = "overflow when adding")]
    fn an_impossible_sum_panics_as_that_of_std() {
        _ = Instant(0) + Duration::MAX;
    }

    /// A sleep is never shorter than asked for, and both clocks see the same one, within the time that a busy host needs.
    #[test]
    fn elapsed_time_is_that_of_std() {
        // The first call measures the rate.
        _ = rate();
        let (outer, start) = (std::time::Instant::now(), Instant::now());
        std::thread::sleep(Duration::from_millis(100));
        let (inner, outer) = (start.elapsed(), outer.elapsed());
        assert!(
            inner >= Duration::from_millis(99) && inner <= outer + Duration::from_millis(1),
            "{inner:?} of {outer:?}"
        );
    }

    /// Each thread takes the newest instant of all threads, and then its own, which must not be earlier. A clock that the CPU
    /// reads before it has taken the other one fails here: see `make bench`.
    #[test]
    fn no_thread_sees_time_go_back() {
        let (newest, back) = (AtomicI64::new(0), AtomicI64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).max(2) {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        let before = newest.load(SeqCst);
                        let now = Instant::now().0;
                        back.fetch_max(before - now, SeqCst);
                        newest.fetch_max(now, SeqCst);
                    }
                });
            }
        });
        assert_eq!(back.into_inner(), 0, "nanoseconds back");
    }
}
