//! pg_test_timing's loop: read, compare, count.

use super::{BUFFER, Histogram};
use timing_clock::{Clock, ticks_between};

/// Backward steps, in ticks or units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backward {
    /// number of backward steps
    pub steps: u64,
    /// largest backward step
    pub largest: u64,
}

/// The ends of one block of reads, and its backward steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// the first reading
    pub first: u64,
    /// the last reading
    pub last: u64,
    pub backward: Backward,
}

/// The totals of the loop. Each difference includes the cost of the loop itself.
#[derive(Clone, Debug, Default)]
pub struct ClassicLoop {
    /// non-negative differences between neighboring readings, in ticks or units
    pub differences: Histogram,
    /// ticks of the blocks without a backward step
    pub ticks: u64,
    /// reads of the blocks without a backward step
    pub reads: u64,
}

impl ClassicLoop {
    /// Reads one block of [`BUFFER`] readings.
    pub fn run<C: Clock>(&mut self, clock: &C) -> Block {
        self.run_in_units::<C, 1>(clock)
    }

    /// Reads one block, and cuts each reading to a multiple of `UNIT` ticks. The differences and backward steps are
    /// numbers of units; the readings in the block are in ticks.
    pub fn run_in_units<C: Clock, const UNIT: u64>(&mut self, clock: &C) -> Block {
        let mut backward = Backward::default();
        let first = clock.read();
        let (mut end, mut last) = (first, first / UNIT);
        for _ in 0..BUFFER {
            end = clock.read();
            let now = end / UNIT;
            match u64::try_from(ticks_between(last, now)) {
                Ok(units) if self.differences.add(units) => last = now,
                // Counting a long difference takes longer. Continue from a new reading, so that this time does not look
                // like an interruption.
                Ok(_) => {
                    end = clock.read();
                    last = end / UNIT;
                }
                Err(_) => {
                    let units = ticks_between(last, now).unsigned_abs();
                    backward = Backward { steps: backward.steps + 1, largest: backward.largest.max(units) };
                    last = now;
                }
            }
        }
        if backward.steps == 0 {
            self.reads += BUFFER as u64;
            self.ticks += u64::try_from(ticks_between(first, end)).unwrap_or(0);
        }
        Block { first, last: end, backward }
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
    fn a_block_with_a_backward_step_does_not_count_for_the_loop_cost() {
        let (classic, block) =
            run(Character { jitter_ns: 0, cost_ns: 25.0, back: vec![(500, 1_025)], ..Character::default() });
        assert_eq!(block.backward, Backward { steps: 1, largest: 1_000 });
        assert_eq!((classic.reads, classic.ticks), (0, 0));
    }

    #[test]
    fn backward_steps_are_counted_with_the_largest_one() {
        let (classic, block) = run(Character {
            jitter_ns: 0,
            cost_ns: 25.0,
            back: vec![(500, 1_025), (600, 525)],
            ..Character::default()
        });
        assert_eq!(block.backward, Backward { steps: 2, largest: 1_000 });
        assert_eq!((block.last, classic.differences.count()), (block.first + 25 * 1024 - 1_550, 1022));
    }

    #[test]
    fn a_long_difference_is_followed_by_a_new_reading() {
        let (classic, block) =
            run(Character { jitter_ns: 0, cost_ns: 25.0, stalls: vec![(500, 1e6)], ..Character::default() });
        assert_eq!((classic.differences.max(), classic.differences.count()), (Some(1_000_025), 1024));
        // The additional reading is part of the time, but not of the number of reads.
        assert_eq!((classic.reads, classic.ticks), (1024, 25 * 1025 + 1_000_000));
        assert_eq!(block.last - block.first, classic.ticks);
    }

    #[test]
    fn readings_in_units_are_cut_before_they_are_compared() {
        let world = World::new(1);
        let clock = SimClock::new(&world, Character { jitter_ns: 0, cost_ns: 250.0, ..Character::default() });
        let mut classic = ClassicLoop::default();
        let block = classic.run_in_units::<_, 1000>(&clock);
        // No difference reaches 1 us, but every fourth reading is in the next microsecond.
        assert_eq!(classic.differences.iter().collect::<Vec<_>>(), [(0, 768), (1, 256)]);
        assert_eq!((classic.reads, classic.ticks, block.last - block.first), (1024, 250 * 1024, 250 * 1024));
    }

    #[test]
    fn a_long_difference_in_units_is_followed_by_a_new_reading() {
        let world = World::new(1);
        let character = Character {
            jitter_ns: 0,
            cost_ns: 250.0,
            stalls: vec![(500, 5e9)],
            origin: 1_000_000,
            ..Character::default()
        };
        let mut classic = ClassicLoop::default();
        let block = classic.run_in_units::<_, 1000>(&SimClock::new(&world, character));
        assert_eq!(block.backward, Backward::default());
        // From 124.75 us to 5 000 125 us after the start.
        assert_eq!((classic.differences.max(), classic.differences.count()), (Some(5_000_001), 1024));
    }

    #[test]
    fn a_backward_step_within_a_unit_does_not_count() {
        let world = World::new(1);
        let character =
            Character { jitter_ns: 0, cost_ns: 1.0, back: vec![(5, 3), (20, 2_500)], ..Character::default() };
        let clock = SimClock::new(&world, Character { origin: 5_000, ..character });
        let block = ClassicLoop::default().run_in_units::<_, 1000>(&clock);
        assert_eq!(block.backward, Backward { steps: 1, largest: 3 }, "5.02 us - 2.5 us = 2.52 us");
    }

    #[test]
    fn a_stopped_clock_has_no_backward_steps() {
        let (classic, block) = run(Character { hz: 0.0, ..Character::default() });
        assert_eq!((block.backward, classic.reads, classic.ticks), (Backward::default(), 1024, 0));
    }
}
