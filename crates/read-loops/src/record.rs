//! The totals of reading one clock again and again. Some blocks are read by pg_test_timing's loop, and some time
//! function calls.

use super::{Histogram, Subsample};
use std::hint::black_box;
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
            let (start, end) = if self.blocks.is_multiple_of(CLASSIC_EVERY) {
                let block = self.classic.run::<C, 1>(clock);
                self.add_backward(block.backward);
                (block.first, block.last)
            } else {
                let before = outside.clock.read_ordered();
                clock.fill(&mut buffer);
                let after = outside.clock.read_ordered();
                self.count(&buffer);
                let ticks = ticks_between(before, after) as f64 - outside.cost;
                self.outside.push(ticks.max(0.0) / BUFFER as f64);
                (buffer[0], buffer[BUFFER - 1])
            };
            self.compare_blocks(last, start);
            self.moved_between_blocks |= *self.first.get_or_insert(start) != start;
            last = Some(end);
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
    /// Reads one block of [`BUFFER`] readings, and cuts each reading to a multiple of `UNIT` ticks. The differences and
    /// backward steps are numbers of units; the readings in the block are in ticks.
    pub fn run<C: Clock, const UNIT: u64>(&mut self, clock: &C) -> Block {
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

/// Calls per block.
const CALLS: u32 = 256;
/// Steps of one call. Each one needs the result of the step before, so one call takes 10 to 15 ns. With 4 to 40 steps,
/// timing added the same time to a call.
const STEPS: u32 = 8;

/// A timer of calls, as a server keeps it for each node of a plan.
struct Timer<'a, C> {
    clock: &'a C,
    is_on: bool,
    /// the reading at the start of the running call, otherwise 0
    start: u64,
    ticks: i64,
    calls: f64,
}

impl<C: Clock> Timer<'_, C> {
    #[inline(never)]
    fn start(&mut self) {
        if self.is_on && self.start == 0 {
            self.start = self.clock.read();
        }
    }

    #[inline(never)]
    fn stop(&mut self) {
        self.calls += 1.0;
        if self.is_on {
            self.ticks += ticks_between(self.start, self.clock.read());
            self.start = 0;
        }
    }
}

/// Returns what timing adds to a call, in ticks of the outside clock. It is the difference between a block of timed
/// calls and a block of calls that are only counted. An interruption makes it wrong, so take the median of many.
///
/// The read cost does not show this. Some reads wait for all work before them, and hold up the work after them: then two
/// reads add more than twice the read cost. Other reads overlap with that work, and add less. The server times each call
/// of a plan node in the same way.
pub fn timed_call<C: Clock>(clock: &C, outside: &Outside) -> f64 {
    let [timed, counted] = [true, false].map(|is_timed| block(clock, outside, is_timed));
    (timed - counted) / f64::from(CALLS)
}

/// Returns the time of a block of calls, in ticks of the outside clock.
fn block<C: Clock>(clock: &C, outside: &Outside, is_timed: bool) -> f64 {
    let function: fn(&mut u64) -> bool = black_box(work);
    let mut timer = Timer { clock, is_on: black_box(is_timed), start: 0, ticks: 0, calls: 0.0 };
    let before = outside.clock.read_ordered();
    let (mut value, mut results) = (1, 0u64);
    for _ in 0..CALLS {
        timer.start();
        results += u64::from(function(&mut value));
        timer.stop();
    }
    let after = outside.clock.read_ordered();
    black_box((value, results, timer.ticks, timer.calls));
    ticks_between(before, after) as f64
}

/// The work of a call: steps that cannot overlap with each other. Like a node of a plan, it keeps its state in memory.
fn work(state: &mut u64) -> bool {
    let mut value = *state;
    for _ in 0..STEPS {
        value = (value ^ (value >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    *state = value;
    value != 0
}

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
        assert_eq!((record.buffers.count(), record.outside.count()), (14, 14));
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

#[cfg(test)]
mod classic_tests {
    use super::*;
    use timing_clock::sim::{Character, SimClock, World};

    fn run(character: Character) -> (ClassicLoop, Block) {
        let world = World::new(1);
        let clock = SimClock::new(&world, character);
        let mut classic = ClassicLoop::default();
        let block = classic.run::<_, 1>(&clock);
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
        let block = classic.run::<_, 1000>(&clock);
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
        let block = classic.run::<_, 1000>(&SimClock::new(&world, character));
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
        let block = ClassicLoop::default().run::<_, 1000>(&clock);
        assert_eq!(block.backward, Backward { steps: 1, largest: 3 }, "5.02 us - 2.5 us = 2.52 us");
    }

    #[test]
    fn a_stopped_clock_has_no_backward_steps() {
        let (classic, block) = run(Character { hz: 0.0, ..Character::default() });
        assert_eq!((block.backward, classic.reads, classic.ticks), (Backward::default(), 1024, 0));
    }
}

#[cfg(test)]
mod timed_calls_tests {
    use super::*;
    use timing_clock::sim::{Character, SimClock, World};

    #[test]
    fn timing_a_call_adds_two_reads() {
        let world = World::new(1);
        let exact = |cost_ns| Character { cost_ns, jitter_ns: 0, ..Character::default() };
        let (clock, timer) = (SimClock::new(&world, exact(25.0)), SimClock::new(&world, exact(10.0)));
        // In simulated time, work takes no time. So the difference consists of the reads only.
        assert_eq!(timed_call(&clock, &Outside { clock: &timer, cost: 10.0 }), 50.0);
        assert_eq!(clock.reads(), u64::from(2 * CALLS));
    }

    #[test]
    fn each_call_continues_from_the_result_of_the_call_before() {
        let mut state = 1;
        let mut states = std::collections::HashSet::new();
        assert!((0..1000).all(|_| work(&mut state) && states.insert(state)));
    }
}
