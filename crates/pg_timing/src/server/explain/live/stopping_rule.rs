//! Decides when the runs are enough.
//!
//! A rule that checks the interval after each round stops too early: by chance, some interval is narrow and wrong. So there
//! are few checks, at fixed shares of the time, and the early ones demand a narrower interval.

use std::time::{Duration, Instant};

/// Fewer rounds give no scatter.
pub const LEAST_ROUNDS: usize = 3;
/// Shares of the time at which the precision is checked, before the end.
const SHARES: [f64; 3] = [0.125, 0.25, 0.4];
/// Relative error that is good enough.
const ENOUGH: f64 = 0.025;
/// Four checks share an error of 5%: each has 1.25%, so 2.5 instead of 2 standard deviations.
const STRICTER: f64 = 0.8;
/// The scatter of fewer rounds can be small by chance.
const ROUNDS_BEFORE_CHECK: usize = 5;

pub struct StoppingRule {
    start: Instant,
    time: Duration,
    checks_done: usize,
}

impl StoppingRule {
    pub fn new(time: Duration) -> StoppingRule {
        StoppingRule { start: Instant::now(), time, checks_done: 0 }
    }

    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the used share of the time, 0 to 1.
    pub fn used(&self) -> f64 {
        (self.elapsed().as_secs_f64() / self.time.as_secs_f64()).min(1.0)
    }

    /// Returns whether to stop after this number of rounds: the time is up, or a check is due and the precision is good
    /// enough. A statement without a precision is too short to measure, and more runs do not help.
    pub fn stop(&mut self, rounds: usize, precision: impl FnOnce() -> Option<f64>) -> bool {
        if self.used() >= 1.0 {
            return rounds >= LEAST_ROUNDS;
        }
        if rounds < ROUNDS_BEFORE_CHECK {
            return false;
        }
        let due = SHARES.iter().filter(|&&share| self.used() >= share).count();
        let is_due = due > std::mem::replace(&mut self.checks_done, due);
        is_due && precision().is_none_or(|error| error < ENOUGH * STRICTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a rule for 1000 s that began so long ago.
    fn after(seconds: f64) -> StoppingRule {
        let start = Instant::now().checked_sub(Duration::from_secs_f64(seconds)).unwrap();
        StoppingRule { start, time: Duration::from_secs(1000), checks_done: 0 }
    }

    #[test]
    fn runs_end_when_the_time_is_up_but_not_before_three_rounds() {
        assert!(after(1000.0).stop(3, || Some(0.5)));
        assert!(!after(1000.0).stop(2, || Some(0.001)));
        assert!(!after(900.0).stop(9, || Some(0.5)));
    }

    #[test]
    fn precise_runs_end_at_a_check_and_not_between_checks() {
        assert!(!after(100.0).stop(9, || Some(0.001)), "no check is due");
        assert!(after(130.0).stop(5, || Some(0.001)));
        assert!(!after(130.0).stop(4, || Some(0.001)), "too few rounds for a check");
        let mut rule = after(130.0);
        assert!(!rule.stop(5, || Some(0.024)), "an early check demands more");
        assert!(!rule.stop(6, || Some(0.001)), "this check is over");
        assert!(after(260.0).stop(9, || None), "more runs do not help a statement that is too short");
    }

    #[test]
    fn a_check_waits_for_enough_rounds() {
        let mut rule = after(300.0);
        assert!(!rule.stop(4, || Some(0.001)));
        assert!(rule.stop(5, || Some(0.001)));
    }
}
