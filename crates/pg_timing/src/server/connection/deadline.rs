//! The time that a call of libpq may take during an attempt to connect.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time limit of one step of libpq before a server has accepted the connection. A name server can take 30 s to fail.
pub const STUCK: Duration = Duration::from_secs(35);
/// Additional time after the limit. If libpq returns within it, the attempt ends with a more precise error.
const GRACE: Duration = Duration::from_secs(1);
/// A day is as good as no limit.
const NO_LIMIT: Duration = Duration::from_secs(86_400);

/// The time by which libpq should have returned. The thread sets it before it calls libpq.
pub struct Deadline {
    start: Instant,
    /// milliseconds after the start
    after: AtomicU64,
}

impl Deadline {
    pub fn new() -> Deadline {
        Deadline { start: Instant::now(), after: AtomicU64::new(STUCK.as_millis() as u64) }
    }

    pub fn set(&self, time: Instant) {
        self.after.store(time.duration_since(self.start).as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn is_over(&self) -> bool {
        self.start.elapsed() > Duration::from_millis(self.after.load(Ordering::Relaxed))
    }
}

/// Returns the time by which a call of libpq should have returned. `host_limit` is the limit of a host that has
/// accepted the connection. `has_next`: the call can go on with the next host, and ask a name server. `prompts`:
/// OpenSSL can ask for the pass phrase of the private key, and the end of the program would leave the terminal without
/// echo.
pub fn latest_return(now: Instant, host_limit: Option<Instant>, has_next: bool, prompts: bool) -> Instant {
    match host_limit {
        _ if prompts => now + NO_LIMIT,
        Some(limit) if has_next => (limit + GRACE).max(now + STUCK),
        Some(limit) => limit + GRACE,
        None => now + STUCK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_take_longer_if_it_can_ask_a_name_server_or_the_user() {
        let now = Instant::now();
        let limit = now + Duration::from_secs(2);
        assert_eq!(latest_return(now, None, false, false), now + STUCK);
        assert_eq!(latest_return(now, Some(limit), false, false), limit + GRACE);
        assert_eq!(latest_return(now, Some(limit), true, false), now + STUCK);
        assert_eq!(latest_return(now, Some(limit), false, true), now + NO_LIMIT);
    }
}
