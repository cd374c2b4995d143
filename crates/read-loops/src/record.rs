//! The totals of reading one clock again and again.

use super::timed_calls::timed_call;
use super::{Backward, ClassicLoop, Histogram, Subsample};
use timing_clock::{Clock, Nanos, ticks_between};

/// Reads per buffer. The buffer has 8 kB, so it fits into the first-level cache. At 9 ns per read, filling it takes 9
/// us, so most buffers are not interrupted.
pub const BUFFER: usize = 1024;
/// The classic loop reads one of this many blocks, to measure `loop_ns`.
const CLASSIC_EVERY: u64 = 8;
/// A block of calls is timed after the first of this many blocks. It has half as many reads as a buffer.
const CALLS_EVERY: u64 = 4;

/// A second clock that times a whole buffer or block of calls, because a coarse clock cannot time its own reads.
pub struct Outside<'a> {
    pub clock: &'a dyn Clock,
    /// cost of timing an empty buffer, in ticks of `clock`
    pub cost: f64,
}

/// The totals of one clock, in its ticks.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// ticks per read, one value per buffer
    pub buffers: Subsample,
    /// ticks per read of the outside clock, one value per buffer
    pub outside: Subsample,
    /// what timing adds to a function call, in ticks of the outside clock, one value per block of calls
    pub timed_calls: Subsample,
    /// non-negative differences between neighboring readings of a buffer
    pub differences: Histogram,
    pub backward_steps: u64,
    /// largest backward step in ticks
    pub largest_backward: u64,
    /// totals of pg_test_timing's loop, for comparison
    pub classic: ClassicLoop,
    blocks: u64,
    /// first reading of the first block
    first: Option<u64>,
    /// whether a block began with another reading than the first one
    moved_between_blocks: bool,
}

impl Record {
    /// Reads `clock` block by block while `go_on` returns true. `go_on` is called after each block.
    pub fn slice<C: Clock>(&mut self, clock: &C, outside: &Outside, mut go_on: impl FnMut() -> bool) {
        let mut buffer = [0u64; BUFFER];
        // Compare blocks only within a slice, because the next slice may run on another CPU.
        let mut last = None;
        loop {
            self.blocks += 1;
            if self.blocks.is_multiple_of(CLASSIC_EVERY) {
                let block = self.classic.run(clock);
                self.add_backward(block.backward);
                self.compare_blocks(last, block.first);
                self.compare_with_first(block.first);
                last = Some(block.last);
            } else {
                let before = outside.clock.read_ordered();
                clock.fill(&mut buffer);
                let after = outside.clock.read_ordered();
                self.compare_blocks(last, buffer[0]);
                self.compare_with_first(buffer[0]);
                self.count(&buffer);
                last = Some(buffer[BUFFER - 1]);
                let ticks = ticks_between(before, after) as f64 - outside.cost;
                self.outside.push(ticks.max(0.0) / BUFFER as f64);
            }
            if self.blocks % CALLS_EVERY == 1 {
                self.timed_calls.push(timed_call(clock, outside));
            }
            if !go_on() {
                return;
            }
        }
    }

    /// Adds the differences and the read cost of a buffer.
    fn count(&mut self, buffer: &[u64; BUFFER]) {
        for pair in buffer.windows(2) {
            let ticks = ticks_between(pair[0], pair[1]);
            match u64::try_from(ticks) {
                Ok(ticks) => _ = self.differences.add(ticks),
                Err(_) => self.add_backward(Backward { steps: 1, largest: ticks.unsigned_abs() }),
            }
        }
        self.buffers.push(ticks_between(buffer[0], buffer[BUFFER - 1]) as f64 / (BUFFER - 1) as f64);
    }

    /// Counts a backward step between two blocks. A forward difference means nothing, because the thread does other
    /// work between blocks.
    fn compare_blocks(&mut self, last: Option<u64>, first: u64) {
        if let Some(ticks @ ..0) = last.map(|last| ticks_between(last, first)) {
            self.add_backward(Backward { steps: 1, largest: ticks.unsigned_abs() });
        }
    }

    fn compare_with_first(&mut self, reading: u64) {
        self.moved_between_blocks |= *self.first.get_or_insert(reading) != reading;
    }

    /// Whether the value ever changed. A block takes only some microseconds, so a coarse clock may change only between
    /// blocks.
    pub fn moved(&self) -> bool {
        self.moved_between_blocks || self.backward_steps > 0 || self.differences.max() > Some(0)
    }

    fn add_backward(&mut self, backward: Backward) {
        self.backward_steps += backward.steps;
        self.largest_backward = self.largest_backward.max(backward.largest);
    }

    /// Returns the number of readings that were compared with the reading before.
    pub fn reads(&self) -> u64 {
        self.differences.count() + self.backward_steps
    }
}

/// Returns the minimum ticks between two consecutive reads of `clock`: the cost of timing an empty block.
pub fn timing_cost(clock: &dyn Clock) -> f64 {
    let attempt = |_| ticks_between(clock.read_ordered(), clock.read_ordered());
    (0..1000).map(attempt).filter(|ticks| *ticks >= 0).min().unwrap_or(0) as f64
}

/// A difference above this multiple of the median is a gap, and not the duration of a read.
pub const GAP_FACTOR: f64 = 16.0;
/// The minimum duration of a gap, because an interrupt takes 1 us or more.
pub const MIN_GAP: Nanos = Nanos(1000.0);

#[cfg(test)]
mod tests {
    use super::*;
    use timing_clock::sim::{Character, SimClock, World};

    /// A clock whose reads take exactly 25 ns.
    fn regular() -> Character {
        Character { cost_ns: 25.0, jitter_ns: 0, ..Character::default() }
    }

    /// Reads this many blocks. A read of the outside clock takes 10 ns.
    fn record(character: Character, blocks: u64) -> Record {
        let world = World::new(1);
        let clock = SimClock::new(&world, character);
        let timer = SimClock::new(&world, Character { cost_ns: 10.0, jitter_ns: 0, ..Character::default() });
        let mut record = Record::default();
        let mut remaining = blocks;
        record.slice(&clock, &Outside { clock: &timer, cost: 10.0 }, || {
            remaining -= 1;
            remaining > 0
        });
        record
    }

    #[test]
    fn one_block_in_eight_is_read_by_the_classic_loop() {
        let record = record(regular(), 16);
        assert_eq!((record.buffers.len(), record.outside.len()), (14, 14));
        assert_eq!((record.classic.reads, record.classic.ticks), (2 * 1024, 2 * 1024 * 25));
        assert_eq!((record.differences.count(), record.reads()), (14 * 1023, 14 * 1023));
    }

    #[test]
    fn the_cost_of_a_read_excludes_the_loop_and_the_outside_clock() {
        let record = record(regular(), 3);
        assert_eq!(record.buffers.quartiles(), Some([25.0; 3]));
        assert_eq!(record.outside.quartiles(), Some([25.0; 3]));
        assert_eq!(record.timed_calls.quartiles(), Some([50.0; 3]));
        assert_eq!((record.differences.quantile(0.0), record.differences.max()), (Some(25), Some(25)));
    }

    #[test]
    fn the_outside_cost_is_never_negative() {
        let world = World::new(1);
        let clock = SimClock::new(&world, regular());
        let mut record = Record::default();
        record.slice(&clock, &Outside { clock: &clock, cost: 1e9 }, || false);
        assert_eq!(record.outside.quartiles(), Some([0.0; 3]));
    }

    #[test]
    fn a_backward_step_within_a_buffer_is_counted() {
        let record = record(Character { back: vec![(500, 1025), (600, 525)], ..regular() }, 1);
        assert_eq!((record.backward_steps, record.largest_backward), (2, 1000));
        assert_eq!((record.differences.count(), record.reads()), (1021, 1023));
    }

    #[test]
    fn a_backward_step_between_two_blocks_is_counted() {
        // The outside clock is read twice between two buffers. The classic loop reads the clock 1025 times. Two blocks of
        // calls precede, with 512 reads each.
        for (read, ticks) in [(1024 + 512 + 1024, 1045), (8 * 1024, 1035), (9 * 1024 + 1, 1035)] {
            let record = record(Character { back: vec![(read, ticks)], ..regular() }, 9);
            assert_eq!((record.backward_steps, record.largest_backward), (1, 1000), "read {read}");
            assert_eq!(record.reads(), record.differences.count() + 1);
        }
    }

    #[test]
    fn a_backward_step_of_the_classic_loop_is_counted() {
        let record = record(Character { back: vec![(8 * 1024 + 10, 1025)], ..regular() }, 8);
        assert_eq!((record.backward_steps, record.largest_backward), (1, 1000));
        assert_eq!((record.classic.reads, record.classic.ticks), (0, 0));
    }

    #[test]
    fn a_first_reading_that_equals_the_last_one_is_no_backward_step() {
        let mut record = Record::default();
        record.compare_blocks(None, 5);
        record.compare_blocks(Some(5), 5);
        assert_eq!(record.backward_steps, 0);
        record.compare_blocks(Some(6), 5);
        assert_eq!((record.backward_steps, record.largest_backward), (1, 1));
    }

    #[test]
    fn the_cost_of_timing_is_the_minimum_without_backward_steps() {
        let world = World::new(1);
        let character = Character { cost_ns: 30.0, jitter_ns: 10, back: vec![(11, 1000)], ..Character::default() };
        let cost = timing_cost(&SimClock::new(&world, character));
        assert!((30.0..32.0).contains(&cost), "{cost}");
    }

    #[test]
    fn a_clock_that_changes_only_between_blocks_moved() {
        // The clock changes once, while the outside clock is read between two blocks.
        let world = World::new(1);
        let clock = SimClock::new(&world, Character { step: 1_000_000_000, ..regular() });
        let timer = SimClock::new(&world, Character { stalls: vec![(2, 1e9)], ..Character::default() });
        let mut record = Record::default();
        let mut left = 2;
        record.slice(&clock, &Outside { clock: &timer, cost: 0.0 }, || {
            left -= 1;
            left > 0
        });
        assert_eq!((record.differences.max(), record.moved()), (Some(0), true));
        assert!(!super::Record::default().moved());
    }

    #[test]
    fn a_clock_that_changes_within_a_block_moved() {
        assert!(record(regular(), 1).moved(), "forward");
        // Its value changes only once, by one step backward.
        let coarse = Character { step: 1_000_000_000, origin: 5_000_000_000, ..regular() };
        let backward = record(Character { back: vec![(500, 1_000_000_000)], ..coarse }, 1);
        assert_eq!((backward.differences.max(), backward.backward_steps, backward.moved()), (Some(0), 1, true));
    }

    #[test]
    fn a_stopped_clock_does_not_move() {
        assert!(!record(Character { hz: 0.0, ..regular() }, 3).moved());
    }

    #[test]
    fn a_stopped_clock_costs_nothing() {
        let world = World::new(1);
        assert_eq!(timing_cost(&SimClock::new(&world, Character { hz: 0.0, ..regular() })), 0.0);
    }
}
