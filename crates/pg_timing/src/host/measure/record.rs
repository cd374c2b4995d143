//! What reading one clock again and again shows.

use super::{Backward, ClassicLoop, Histogram, Thinned};
use timing_clock::{Clock, Nanos, ticks_between};

/// Reads in one buffer. At 9 ns a read one of 8 kB takes 9 us: it fits the first-level cache, and
/// most buffers pass without an interruption.
pub const BUFFER: usize = 1024;
/// Of so many blocks one is read by the classic loop, for `loop_ns`.
const LOOP_EVERY: u64 = 8;

/// A second clock to time a buffer from outside: a coarse clock cannot time its own reads.
pub struct Outside<'a> {
    pub clock: &'a dyn Clock,
    /// what one such timing takes by itself, in ticks of that clock
    pub cost: f64,
}

/// The running totals of one clock, in its ticks.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// ticks per read, a value per buffer
    pub buffers: Thinned,
    /// the same timed from outside, in ticks of the outside clock
    pub outside: Thinned,
    /// differences between readings next to each other in a buffer, none of them negative
    pub differences: Histogram,
    pub backward_steps: u64,
    pub largest_backward: u64,
    /// the classic loop, for comparison with pg_test_timing
    pub classic: ClassicLoop,
    blocks: u64,
}

impl Record {
    /// Reads `clock` for as long as `go_on` says so, which is asked once a block.
    pub fn slice<C: Clock>(&mut self, clock: &C, outside: &Outside, mut go_on: impl FnMut() -> bool) {
        let mut buffer = [0u64; BUFFER];
        // The link between blocks holds within a slice only: the next may run on another CPU.
        let mut last = None;
        loop {
            self.blocks += 1;
            if self.blocks.is_multiple_of(LOOP_EVERY) {
                let (first, end, back) = self.classic.run(clock, BUFFER as u64);
                self.backward(back);
                self.link(last, first);
                last = Some(end);
            } else {
                let before = outside.clock.read_ordered();
                clock.fill(&mut buffer);
                let after = outside.clock.read_ordered();
                self.link(last, buffer[0]);
                self.count(&buffer);
                last = Some(buffer[BUFFER - 1]);
                let ticks = ticks_between(before, after) as f64 - outside.cost;
                self.outside.push(ticks.max(0.0) / BUFFER as f64);
            }
            if !go_on() {
                return;
            }
        }
    }

    fn count(&mut self, buffer: &[u64; BUFFER]) {
        for pair in buffer.windows(2) {
            let ticks = ticks_between(pair[0], pair[1]);
            match u64::try_from(ticks) {
                Ok(ticks) => _ = self.differences.add(ticks),
                Err(_) => self.backward(Backward { steps: 1, largest: ticks.unsigned_abs() }),
            }
        }
        self.buffers.push(ticks_between(buffer[0], buffer[BUFFER - 1]) as f64 / (BUFFER - 1) as f64);
    }

    /// Between two blocks time passes that is not a read's: only a step back means anything.
    fn link(&mut self, last: Option<u64>, first: u64) {
        if let Some(ticks @ ..0) = last.map(|last| ticks_between(last, first)) {
            self.backward(Backward { steps: 1, largest: ticks.unsigned_abs() });
        }
    }

    fn backward(&mut self, back: Backward) {
        self.backward_steps += back.steps;
        self.largest_backward = self.largest_backward.max(back.largest);
    }

    /// Readings that were compared with the one before them.
    pub fn reads(&self) -> u64 {
        self.differences.count() + self.backward_steps
    }
}

/// What timing nothing with `clock` takes, in its ticks: the least of many.
pub fn timing_cost(clock: &dyn Clock) -> f64 {
    let once = |_| ticks_between(clock.read_ordered(), clock.read_ordered());
    (0..1000).map(once).filter(|ticks| *ticks >= 0).min().unwrap_or(0) as f64
}

/// Gaps are told from reads by this factor over the median, and are at least this long: what the
/// kernel does in an interrupt takes a microsecond or more.
pub const GAP_FACTOR: f64 = 16.0;
/// See [`GAP_FACTOR`].
pub const GAP_LEAST: Nanos = Nanos(1000.0);
