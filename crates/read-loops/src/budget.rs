//! A time limit for measuring.

use std::sync::atomic::{AtomicBool, Ordering};
use timing_clock::{Clock, Nanos, SystemSyscall, ticks_between};

/// A time limit that Ctrl-C can end early.
///
/// It reads the time by system calls. The vDSO's clock may be denied, intercepted, or the very clock that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    start: u64,
    limit: Nanos,
    stop: &'a AtomicBool,
}

impl<'a> Budget<'a> {
    /// Returns a budget that starts now. `stop` ends it early.
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

    /// Whether there is time left and nobody asked to stop.
    pub fn go_on(&self) -> bool {
        !self.interrupted() && self.spent().0 < self.limit.0
    }

    /// Whether somebody asked to stop.
    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_its_budget() {
        let stop = AtomicBool::new(false);
        let hour = Budget::new(Nanos::from_secs(3600.0), &stop);
        assert!(hour.go_on() && hour.part(Nanos::from_secs(7200.0)).left().secs() <= 3600.0);
        assert!(!hour.part(Nanos(0.0)).go_on());
        stop.store(true, Ordering::Relaxed);
        assert!(hour.interrupted() && !hour.go_on() && hour.left().secs() > 3500.0);
    }
}
