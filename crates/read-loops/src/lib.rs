//! The loops that read clocks and count. Callers pass the clock, the time limit and the stop flag. The loops print
//! nothing.
//!
//! This is a separate crate, so that debug builds can optimize it. Without optimization, a read takes 50% longer.
//! Generic code is compiled in the crate that chooses its types. So [`clocks()`] chooses all real clocks here, and
//! returns them as trait objects.

#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "no_affinity.rs")]
mod affinity;
mod clocks;
mod record;
mod samples;
mod skew;
mod step;

pub use affinity::{Pinned, allowed};
pub use clocks::{COUNTERS, Clocks, Loops, Meter, SYSTEM, clock, clocks};
pub use record::{BUFFER, Backward, Block, ClassicLoop, GAP_FACTOR, MIN_GAP, Outside, Record, timing_cost};
pub use samples::{Histogram, Subsample};
pub use skew::{Bounds, SkewError, skew_between};
pub use step::{MeasuredStep, measure_step};

use std::sync::atomic::{AtomicBool, Ordering};
use timing_clock::{Clock, Nanos, SystemSyscall, ticks_between};

/// A time limit. A stop flag ends it early, for example after Ctrl-C.
///
/// It reads the time with system calls, because the vDSO's clock may be denied or intercepted. It may also be the clock
/// that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    start: u64,
    limit: Nanos,
    stop: &'a AtomicBool,
}

impl<'a> Budget<'a> {
    /// Returns a budget that starts now. Setting `stop` ends it early.
    pub fn new(limit: Nanos, stop: &'a AtomicBool) -> Budget<'a> {
        Budget { start: SystemSyscall::default().read(), limit, stop }
    }

    /// Returns a budget that starts now and ends after `limit`, or when this budget ends.
    pub fn part(&self, limit: Nanos) -> Budget<'a> {
        Budget::new(Nanos(limit.0.min(self.left().0)), self.stop)
    }

    /// Returns the remaining time, at least 0.
    pub fn left(&self) -> Nanos {
        Nanos((self.limit.0 - self.spent().0).max(0.0))
    }

    /// Returns the time since the start.
    pub fn spent(&self) -> Nanos {
        Nanos(ticks_between(self.start, SystemSyscall::default().read()) as f64)
    }

    /// Returns whether time remains and the stop flag is not set.
    pub fn go_on(&self) -> bool {
        !self.interrupted() && self.spent().0 < self.limit.0
    }

    /// Returns whether the stop flag is set.
    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_no_later_than_its_budget() {
        let stop = AtomicBool::new(false);
        let hour = Budget::new(Nanos::from_secs(3600.0), &stop);
        assert!(hour.go_on() && hour.part(Nanos::from_secs(7200.0)).left().secs() <= 3600.0);
        assert!(!hour.part(Nanos(0.0)).go_on());
        stop.store(true, Ordering::Relaxed);
        assert!(hour.interrupted() && !hour.go_on() && hour.left().secs() > 3500.0);
    }

    /// Returns a budget of 60 s that started 10 s ago.
    fn started(stop: &AtomicBool) -> Budget<'_> {
        let budget = Budget::new(Nanos::from_secs(60.0), stop);
        Budget { start: budget.start - 10_000_000_000, ..budget }
    }

    #[test]
    fn spent_and_remaining_time_add_up_to_the_limit() {
        let stop = AtomicBool::new(false);
        let budget = started(&stop);
        assert!((10.0..50.0).contains(&budget.spent().secs()), "{budget:?}");
        assert!((10.0..=50.0).contains(&budget.left().secs()), "{budget:?}");
        assert!((10.0..=50.0).contains(&budget.part(Nanos::from_secs(100.0)).left().secs()), "{budget:?}");
        assert!(budget.part(Nanos::from_secs(5.0)).left().secs() <= 5.0, "{budget:?}");
    }

    #[test]
    fn an_exceeded_budget_has_no_time_left() {
        let stop = AtomicBool::new(false);
        let exceeded = Budget { limit: Nanos::from_secs(5.0), ..started(&stop) };
        assert_eq!((exceeded.left(), exceeded.go_on(), exceeded.interrupted()), (Nanos(0.0), false, false));
    }
}
