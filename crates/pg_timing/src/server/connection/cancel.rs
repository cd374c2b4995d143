//! Ends a statement that was stopped or takes too long, and notices a server that does not answer.

use super::THREAD_REMAINS;
use super::libpq::{Libpq, Opaque};
use libc::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Additional time after the limit. The server has the same limit, and ends the statement itself.
const GRACE: Duration = Duration::from_secs(2);
/// Time that the server has to accept a cancel request.
const ACCEPT: Duration = Duration::from_secs(2);
/// Time that the server has to end a statement after a cancel request. Sorts and JIT compilation can delay that.
const END: Duration = Duration::from_secs(5);
/// Interval between cancel requests. The server ignores a request that arrives before it starts the statement.
const INTERVAL: Duration = Duration::from_millis(500);

/// Watches one statement.
pub struct Watch<'a> {
    stop: &'a AtomicBool,
    start: Instant,
    limit: Duration,
    /// time of the first and of the last cancel request
    canceled: Option<(Instant, Instant)>,
}

/// What to do about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Wait,
    Cancel,
    GiveUp,
}

impl<'a> Watch<'a> {
    /// Starts now. The server should end the statement within `limit`.
    pub fn new(stop: &'a AtomicBool, limit: Duration) -> Watch<'a> {
        Watch { stop, start: Instant::now(), limit, canceled: None }
    }

    /// Returns what to do now.
    pub fn step(&mut self) -> Step {
        self.step_at(Instant::now())
    }

    fn step_at(&mut self, now: Instant) -> Step {
        match self.canceled {
            Some((first, _)) if now.duration_since(first) > END => Step::GiveUp,
            Some((first, last)) if now.duration_since(last) > INTERVAL => {
                self.canceled = Some((first, now));
                Step::Cancel
            }
            Some(_) => Step::Wait,
            None if self.stop.load(Ordering::Relaxed) || now.duration_since(self.start) > self.limit + GRACE => {
                self.canceled = Some((now, now));
                Step::Cancel
            }
            None => Step::Wait,
        }
    }
}

/// Libpq's cancel request, which may move to another thread.
struct Request(Opaque);

// SAFETY: libpq's documentation allows this use in another thread. Only one thread has the request.
unsafe impl Send for Request {}

/// Asks the server to cancel the statement, which then returns an error. Returns whether the server accepted the
/// request.
///
/// libpq waits for the server without a limit, so this happens in a thread that may remain.
pub fn cancel(pq: &'static Libpq, conn: Opaque) -> bool {
    // SAFETY: the connection is not NULL.
    let request = Request(unsafe { (pq.PQgetCancel)(conn) });
    if request.0.is_null() {
        return false;
    }
    let (done, result) = mpsc::channel();
    let send = move || {
        let Request(request) = { request };
        let mut message = [0 as c_char; 256];
        // SAFETY: the request is freed once, and the buffer has the given length.
        let taken = unsafe {
            let taken = (pq.PQcancel)(request, message.as_mut_ptr(), message.len() as c_int) != 0;
            (pq.PQfreeCancel)(request);
            taken
        };
        _ = done.send(taken);
    };
    let thread = std::thread::Builder::new().name("cancel".into()).spawn(send);
    let taken = result.recv_timeout(ACCEPT);
    THREAD_REMAINS.fetch_or(taken == Err(mpsc::RecvTimeoutError::Timeout), Ordering::Relaxed);
    thread.is_ok() && taken.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(stopped: bool, seconds: &[f64]) -> Vec<Step> {
        let stop = AtomicBool::new(stopped);
        let mut watch = Watch::new(&stop, Duration::from_secs(5));
        let start = watch.start;
        seconds.iter().map(|&s| watch.step_at(start + Duration::from_secs_f64(s))).collect()
    }

    #[test]
    fn a_statement_is_canceled_after_the_limit_and_then_given_up() {
        use Step::*;
        assert_eq!(
            steps(false, &[0.1, 5.1, 6.9, 7.1, 7.2, 7.7, 8.3, 12.0, 12.2]),
            [Wait, Wait, Wait, Cancel, Wait, Cancel, Cancel, Cancel, GiveUp]
        );
    }

    #[test]
    fn a_stopped_statement_is_canceled_at_once() {
        use Step::*;
        assert_eq!(steps(true, &[0.1, 0.2, 0.7, 5.2]), [Cancel, Wait, Cancel, GiveUp]);
    }
}
