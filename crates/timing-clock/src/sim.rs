//! Synthetic clocks, for tests of code that measures clocks.
//!
//! A [`World`] has one true time. It advances only when a clock is read, or when a test lets time pass. The clocks of a
//! world show this time with faults that the test chooses. So every result has a known correct value, and no test depends
//! on the speed of its machine.

use crate::Clock;
use std::cell::Cell;

/// A true time in femtoseconds. Each read of a clock advances it.
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

    /// Returns a random number below `n`, or 0 if `n` is 0. The generator is xorshift: repeatable, and random enough for
    /// jitter.
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
    /// step of the value, in ticks
    pub step: u64,
    /// minimum duration of one read, in ns of true time
    pub cost_ns: f64,
    /// maximum random addition to the duration of a read, in ns
    pub jitter_ns: u64,
    /// backward steps: the number of the read, counted from 0, and the ticks by which the value drops permanently
    pub back: Vec<(u64, u64)>,
    /// interruptions: the number of the read, counted from 0, and the duration in ns
    pub stalls: Vec<(u64, f64)>,
}

impl Default for Character {
    fn default() -> Self {
        Character { hz: 1e9, origin: 0, step: 1, cost_ns: 20.0, jitter_ns: 10, back: Vec::new(), stalls: Vec::new() }
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
}
