//! pg_test_timing's loop: read, compare, count.

use super::Histogram;
use timing_clock::{Clock, ticks_between};

/// Steps back, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backward {
    pub steps: u64,
    pub largest: u64,
}

/// What the loop has seen so far. Its own work is part of each difference.
#[derive(Clone, Debug, Default)]
pub struct ClassicLoop {
    pub differences: Histogram,
    /// of the blocks in which nothing went back
    pub ticks: u64,
    pub reads: u64,
}

impl ClassicLoop {
    /// One block. Returns its first and last reading, and what went back in it.
    pub fn run<C: Clock>(&mut self, clock: &C, reads: u64) -> (u64, u64, Backward) {
        let mut back = Backward::default();
        let first = clock.read();
        let mut last = first;
        for _ in 0..reads {
            let now = clock.read();
            let ticks = ticks_between(last, now);
            match u64::try_from(ticks) {
                // After the slow path the loop starts from a fresh reading, so that its own
                // work is not taken for an interruption.
                Ok(ticks) => last = if self.differences.add(ticks) { now } else { clock.read() },
                Err(_) => {
                    back = Backward { steps: back.steps + 1, largest: back.largest.max(ticks.unsigned_abs()) };
                    last = now;
                }
            }
        }
        if back.steps == 0 {
            self.reads += reads;
            self.ticks += u64::try_from(ticks_between(first, last)).unwrap_or(0);
        }
        (first, last, back)
    }
}
