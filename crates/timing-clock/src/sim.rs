//! Synthetic clocks, for tests of code that measures clocks.
//!
//! A [`World`] has one true time. It advances only when a clock is read or pauses, or when a test lets time pass. The clocks of a
//! world show this time with faults that the test chooses. So every result has a known correct value, and no test depends
//! on the speed of its machine.
//!
//! A minor version may add fields to [`Character`] and change the random numbers: end a `Character` with
//! `..Character::default()`, and compare no exact random numbers.

use crate::Clock;
use std::cell::Cell;

/// A true time in femtoseconds. Each read and each pause of a clock advances it.
#[derive(Debug)]
pub struct World {
    now_fs: Cell<u128>,
    random: Cell<u64>,
}

const FS_PER_NS: u128 = 1_000_000;

impl World {
    /// Returns a world at time 0. The same `seed` gives the same random numbers.
    pub fn new(seed: u64) -> World {
        // xorshift only returns 0 if it starts with 0.
        World { now_fs: Cell::new(0), random: Cell::new(seed | 1 << 40) }
    }

    /// Returns the true time in nanoseconds.
    pub fn now_ns(&self) -> f64 {
        self.now_fs.get() as f64 / FS_PER_NS as f64
    }

    /// Advances the true time.
    pub fn pass_ns(&self, ns: f64) {
        self.now_fs.set(self.now_fs.get() + (ns * FS_PER_NS as f64) as u128);
    }

    /// Returns a random number below `n`, or 0 if `n` is 0. The generator is xorshift: repeatable, and random enough
    /// for jitter.
    pub fn random_below(&self, n: u64) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x % n.max(1)
    }
}

/// The behavior of a synthetic clock. The default is a nanosecond clock without faults: steps of one tick, and 20 to
/// 30 ns per read.
#[derive(Clone, Debug)]
pub struct Character {
    /// ticks per second
    pub hz: f64,
    /// value at the world's time 0, in ticks
    pub origin: u64,
    /// step of the value, in ticks; a read panics if it is 0
    pub step: u64,
    /// minimum duration of one read, in ns of true time
    pub cost_ns: f64,
    /// maximum random addition to the duration of a read, in ns
    pub jitter_ns: u64,
    /// backward steps: the number of the read, counted from 0, and the ticks by which the value drops permanently
    pub back: Vec<(u64, u64)>,
    /// duration of one turn of a pause, in ns
    pub pause_ns: f64,
    /// interruptions: the number of the read, counted from 0, and the duration in ns
    pub stalls: Vec<(u64, f64)>,
}

impl Default for Character {
    fn default() -> Self {
        let (back, stalls) = (Vec::new(), Vec::new());
        Character { hz: 1e9, origin: 0, step: 1, cost_ns: 20.0, jitter_ns: 10, back, pause_ns: 1.0, stalls }
    }
}

/// A clock of a [`World`].
#[derive(Debug)]
pub struct SimClock<'w> {
    world: &'w World,
    character: Character,
    reads: Cell<u64>,
    dropped: Cell<u64>,
}

impl<'w> SimClock<'w> {
    /// Returns a clock in `world` with this behavior.
    pub fn new(world: &'w World, character: Character) -> Self {
        SimClock { world, character, reads: Cell::new(0), dropped: Cell::new(0) }
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }
}

impl Clock for SimClock<'_> {
    fn read(&self) -> u64 {
        let nth = self.reads.get();
        self.reads.set(nth + 1);
        let jitter = self.world.random_below(self.character.jitter_ns * 1000) as f64 / 1000.0;
        // A read returns the time at the middle of its duration, like a real clock.
        let half = (self.character.cost_ns + jitter) / 2.0;
        self.world.pass_ns(half);
        for (_, ns) in self.character.stalls.iter().filter(|(at, _)| *at == nth) {
            self.world.pass_ns(*ns);
        }
        for (_, ticks) in self.character.back.iter().filter(|(at, _)| *at == nth) {
            self.dropped.set(self.dropped.get() + ticks);
        }
        let ticks = (self.world.now_fs.get() as f64 * self.character.hz / 1e15) as u64;
        self.world.pass_ns(half);
        let ticks = ticks - ticks % self.character.step;
        self.character.origin.wrapping_add(ticks).wrapping_sub(self.dropped.get())
    }

    fn pause(&self, turns: u64) {
        self.world.pass_ns(turns as f64 * self.character.pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock without jitter: a read takes 20 ns and returns the time after 10 ns.
    fn without_jitter() -> Character {
        Character { jitter_ns: 0, ..Character::default() }
    }

    fn readings(character: Character) -> [u64; 4] {
        let world = World::new(1);
        let clock = SimClock::new(&world, character);
        std::array::from_fn(|_| clock.read())
    }

    #[test]
    fn a_read_returns_the_time_at_its_middle() {
        assert_eq!(readings(without_jitter()), [10, 30, 50, 70]);
    }

    #[test]
    fn a_clock_has_a_rate_an_origin_and_a_step() {
        assert_eq!(readings(Character { hz: 2e9, ..without_jitter() }), [20, 60, 100, 140]);
        assert_eq!(readings(Character { origin: u64::MAX, ..without_jitter() }), [9, 29, 49, 69]);
        assert_eq!(readings(Character { step: 16, ..without_jitter() }), [0, 16, 48, 64]);
    }

    #[test]
    fn backward_steps_are_permanent_and_add_up() {
        assert_eq!(readings(Character { back: vec![(1, 5), (3, 20)], ..without_jitter() }), [10, 25, 45, 45]);
    }

    #[test]
    fn an_interruption_delays_its_read_and_all_later_reads() {
        assert_eq!(readings(Character { stalls: vec![(2, 1000.0)], ..without_jitter() }), [10, 30, 1050, 1070]);
    }

    #[test]
    fn jitter_makes_reads_longer_by_up_to_its_limit() {
        let world = World::new(1);
        let clock = SimClock::new(&world, Character { jitter_ns: 10, ..Character::default() });
        let mut durations: Vec<f64> = Vec::new();
        for _ in 0..1000 {
            let before = world.now_ns();
            clock.read();
            durations.push(world.now_ns() - before);
        }
        durations.sort_by(f64::total_cmp);
        assert_eq!(clock.reads(), 1000);
        assert!(durations[0] >= 20.0 && durations[0] < 20.5, "{durations:?}");
        assert!(durations[999] < 30.0 && durations[999] > 29.5, "{durations:?}");
    }

    #[test]
    fn a_pause_advances_the_true_time_by_its_turns() {
        let world = World::new(1);
        let clock = SimClock::new(&world, Character { pause_ns: 1.5, ..Character::default() });
        clock.pause(4);
        assert_eq!((world.now_ns(), clock.reads()), (6.0, 0));
    }

    #[test]
    fn pass_ns_advances_the_true_time() {
        let world = World::new(1);
        world.pass_ns(1.5);
        world.pass_ns(2.0);
        assert_eq!((world.now_ns(), world.now_ns()), (3.5, 3.5));
    }

    /// A failed test can be repeated only if the numbers of a seed never change.
    #[test]
    fn the_random_numbers_of_a_seed_are_stable() {
        let numbers = |seed: u64| {
            let world = World::new(seed);
            [(); 4].map(|()| world.random_below(1000))
        };
        assert_eq!(numbers(1), [89, 873, 985, 253]);
        assert_eq!(World::new(1).random_below(0), 0);
        for seed in [0, 1 << 40] {
            assert_ne!(numbers(seed), [0; 4], "seed {seed}");
        }
    }
}
