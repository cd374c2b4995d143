//! Decides when the runs are enough.
//!
//! A rule that looks at the interval after each round stops too early: by chance, some interval is narrow and wrong. So there
//! are few looks, at fixed shares of the time, and the early ones demand a narrower interval.

use std::time::{Duration, Instant};

/// Shares of the time at which the precision is looked at, before the end.
const SHARES: [f64; 3] = [0.125, 0.25, 0.4];
/// Relative error that is good enough.
const ENOUGH: f64 = 0.025;
/// Four looks share an error of 5%: each has 1.25%, so 2.5 instead of 2 standard deviations.
const STRICTER: f64 = 0.8;

pub struct Looks {
    start: Instant,
    time: Duration,
    done: usize,
}

impl Looks {
    pub fn new(time: Duration) -> Looks {
        Looks { start: Instant::now(), time, done: 0 }
    }

    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the used share of the time, 0 to 1.
    pub fn used(&self) -> f64 {
        (self.elapsed().as_secs_f64() / self.time.as_secs_f64()).min(1.0)
    }

    /// Returns whether to stop: the time is up, or it is time for a look and the precision is good enough. A statement
    /// without a precision is too short to measure, and more runs do not help.
    pub fn stop(&mut self, precision: impl FnOnce() -> Option<f64>) -> bool {
        let due = SHARES.iter().filter(|&&share| self.used() >= share).count();
        let look = due > std::mem::replace(&mut self.done, due);
        self.used() >= 1.0 || look && precision().is_none_or(|error| error < ENOUGH * STRICTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns looks that began so long ago.
    fn looks_after(seconds: f64) -> Looks {
        let start = Instant::now().checked_sub(Duration::from_secs_f64(seconds)).unwrap();
        Looks { start, time: Duration::from_secs(1000), done: 0 }
    }

    #[test]
    fn runs_end_when_the_time_is_up() {
        assert!(looks_after(1000.0).stop(|| Some(0.5)));
        assert!(!looks_after(900.0).stop(|| Some(0.5)));
    }

    #[test]
    fn precise_runs_end_at_a_look_and_not_between_looks() {
        assert!(!looks_after(100.0).stop(|| Some(0.001)), "no look is due");
        assert!(looks_after(130.0).stop(|| Some(0.001)));
        let mut looks = looks_after(130.0);
        assert!(!looks.stop(|| Some(0.024)), "an early look demands more");
        assert!(!looks.stop(|| Some(0.001)), "this look is over");
        assert!(looks_after(260.0).stop(|| None), "more runs do not help a statement that is too short");
    }
}
