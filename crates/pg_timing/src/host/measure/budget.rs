//! How long to go on.

use std::sync::atomic::{AtomicBool, Ordering};
use timing_clock::{Clock, Nanos, SystemSyscall, ticks_between};

/// A time limit that Ctrl-C ends early.
///
/// It is kept by system calls: the vDSO's clock may be denied, interposed, or the very thing that
/// is being measured.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    start: u64,
    limit: Nanos,
    stop: &'a AtomicBool,
}

impl<'a> Budget<'a> {
    pub fn new(limit: Nanos, stop: &'a AtomicBool) -> Budget<'a> {
        Budget { start: SystemSyscall::default().read(), limit, stop }
    }

    /// A budget that starts now and ends after `limit`, or with this one.
    pub fn part(&self, limit: Nanos) -> Budget<'a> {
        Budget::new(Nanos(limit.0.min(self.left().0)), self.stop)
    }

    pub fn left(&self) -> Nanos {
        Nanos((self.limit.0 - self.spent().0).max(0.0))
    }

    pub fn spent(&self) -> Nanos {
        Nanos(ticks_between(self.start, SystemSyscall::default().read()) as f64)
    }

    pub fn go_on(&self) -> bool {
        !self.interrupted() && self.spent().0 < self.limit.0
    }

    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
