//! pg_test_timing's loop: read, compare, count.

use super::{BUFFER, Histogram};
use timing_clock::{Clock, ticks_between};

/// Backward steps, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backward {
    pub steps: u64,
    pub largest: u64,
}

/// One block of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// the first reading
    pub first: u64,
    /// the last reading
    pub last: u64,
    pub backward: Backward,
}

/// The totals of the loop. Each difference includes the loop's own work.
#[derive(Clone, Debug, Default)]
pub struct ClassicLoop {
    pub differences: Histogram,
    /// ticks of the blocks without a backward step
    pub ticks: u64,
    /// reads of the blocks without a backward step
    pub reads: u64,
}

impl ClassicLoop {
    /// Reads one block of [`BUFFER`] readings.
    pub fn run<C: Clock>(&mut self, clock: &C) -> Block {
        let mut backward = Backward::default();
        let first = clock.read();
        let mut last = first;
        for _ in 0..BUFFER {
            let now = clock.read();
            let ticks = ticks_between(last, now);
            match u64::try_from(ticks) {
                // A long difference takes longer to count. Start from a new reading, so that the counting does not
                // look like an interruption.
                Ok(ticks) => last = if self.differences.add(ticks) { now } else { clock.read() },
                Err(_) => {
                    backward =
                        Backward { steps: backward.steps + 1, largest: backward.largest.max(ticks.unsigned_abs()) };
                    last = now;
                }
            }
        }
        if backward.steps == 0 {
            self.reads += BUFFER as u64;
            self.ticks += u64::try_from(ticks_between(first, last)).unwrap_or(0);
        }
        Block { first, last, backward }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timing_clock::sim::{Character, SimClock, World};

    fn run(character: Character) -> (ClassicLoop, Block) {
        let world = World::new(1);
        let clock = SimClock::new(&world, character);
        let mut classic = ClassicLoop::default();
        let block = classic.run(&clock);
        (classic, block)
    }

    #[test]
    fn a_block_counts_every_read() {
        let (classic, block) = run(Character { jitter_ns: 0, cost_ns: 25.0, ..Character::default() });
        assert_eq!((classic.reads, classic.ticks), (1024, 25 * 1024));
        assert_eq!((block.last - block.first, block.backward), (25 * 1024, Backward::default()));
        assert_eq!(classic.differences.count(), 1024);
    }

    #[test]
    fn a_block_with_a_backward_step_gives_no_loop_cost() {
        let (classic, block) =
            run(Character { jitter_ns: 0, cost_ns: 25.0, back: vec![(500, 1_025)], ..Character::default() });
        assert_eq!(block.backward, Backward { steps: 1, largest: 1_000 });
        assert_eq!((classic.reads, classic.ticks), (0, 0));
    }
}
