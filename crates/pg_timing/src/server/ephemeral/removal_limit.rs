//! The time limit for the removal of one or several folders.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The server has half of this time to end after SIGQUIT. PostgreSQL itself waits five seconds for its processes.
const LIMIT: Duration = Duration::from_secs(10);

/// A time limit that a signal can end.
pub struct RemovalLimit<'a> {
    start: Instant,
    stop: Option<&'a AtomicBool>,
}

impl RemovalLimit<'_> {
    /// Starts the time limit. `stop` ends it.
    pub fn new(stop: Option<&AtomicBool>) -> RemovalLimit<'_> {
        RemovalLimit { start: Instant::now(), stop }
    }

    /// Returns whether there is time left.
    pub fn is_left(&self) -> bool {
        self.start.elapsed() < LIMIT && !self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Returns whether half of the time is over.
    #[cfg(target_os = "linux")]
    pub fn is_half_over(&self) -> bool {
        self.start.elapsed() > LIMIT / 2
    }
}
