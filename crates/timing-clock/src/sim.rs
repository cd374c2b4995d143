//! Synthetic clocks, to test what measures clocks.
//!
//! A [`World`] has one true time that moves only when a clock is read. Its clocks show that time
//! through faults that a test chooses, so every figure has a known answer and no test depends on
//! the machine it runs on.

use crate::Clock;
use std::cell::Cell;

/// A true time, in femtoseconds, that each read moves on.
#[derive(Debug)]
pub struct World {
    now_fs: Cell<u128>,
    random: Cell<u64>,
}

const FS_PER_NS: u128 = 1_000_000;

impl World {
    /// A world at its beginning. The same `seed` gives the same run.
    pub fn new(seed: u64) -> World {
        // xorshift must not start at 0
        World { now_fs: Cell::new(0), random: Cell::new(seed | 1 << 40) }
    }

    /// The true time in nanoseconds.
    pub fn now_ns(&self) -> f64 {
        self.now_fs.get() as f64 / FS_PER_NS as f64
    }

    /// Lets time pass.
    pub fn pass_ns(&self, ns: f64) {
        self.now_fs.set(self.now_fs.get() + (ns * FS_PER_NS as f64) as u128);
    }

    /// A random number below `n` (xorshift: repeatable, and good enough to dither with).
    pub fn random_below(&self, n: u64) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x % n.max(1)
    }
}

/// How a synthetic clock behaves. The default is a clean nanosecond clock: steps of one tick, 20 to
/// 30 ns a read.
#[derive(Clone, Debug)]
pub struct Character {
    /// ticks per second
    pub hz: f64,
    /// value at the world's beginning, in ticks
    pub origin: u64,
    /// the value moves in multiples of this many ticks
    pub step: u64,
    /// what one read takes, in ns of true time
    pub cost_ns: f64,
    /// up to so much more, at random
    pub jitter_ns: u64,
    /// on these reads (counted from 0) the value drops by so many ticks, and stays so
    pub back: Vec<(u64, u64)>,
    /// on these reads (counted from 0) the reader is held up for so many ns
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
    is: Character,
    reads: Cell<u64>,
    dropped: Cell<u64>,
}

impl<'w> SimClock<'w> {
    /// A clock in `world` that behaves so.
    pub fn new(world: &'w World, character: Character) -> Self {
        SimClock { world, is: character, reads: Cell::new(0), dropped: Cell::new(0) }
    }

    /// How often it was read.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }
}

impl Clock for SimClock<'_> {
    fn read(&self) -> u64 {
        let nth = self.reads.get();
        self.reads.set(nth + 1);
        let jitter = self.world.random_below(self.is.jitter_ns * 1000) as f64 / 1000.0;
        // The instant that is shown lies in the middle of the read, as with a real clock.
        let half = (self.is.cost_ns + jitter) / 2.0;
        self.world.pass_ns(half);
        for (_, ns) in self.is.stalls.iter().filter(|(at, _)| *at == nth) {
            self.world.pass_ns(*ns);
        }
        for (_, ticks) in self.is.back.iter().filter(|(at, _)| *at == nth) {
            self.dropped.set(self.dropped.get() + ticks);
        }
        let ticks = (self.world.now_fs.get() as f64 * self.is.hz / 1e15) as u64;
        self.world.pass_ns(half);
        let ticks = ticks - ticks % self.is.step;
        self.is.origin.wrapping_add(ticks).wrapping_sub(self.dropped.get())
    }
}
