//! The totals of reading one clock again and again.

use super::{Backward, ClassicLoop, Histogram, Subsample};
use timing_clock::{Clock, Nanos, ticks_between};

/// Reads per buffer. A buffer of 8 kB fits into the first-level cache. At 9 ns per read it takes 9 us, so most buffers
/// are not interrupted.
pub const BUFFER: usize = 1024;
/// One block in this many is read by the classic loop, for `loop_ns`.
const CLASSIC_EVERY: u64 = 8;

/// A second clock that times a whole buffer: a coarse clock cannot time its own reads.
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
    /// non-negative differences between neighboring readings of a buffer
    pub differences: Histogram,
    pub backward_steps: u64,
    pub largest_backward: u64,
    /// the classic loop, for comparison with pg_test_timing
    pub classic: ClassicLoop,
    blocks: u64,
}

impl Record {
    /// Reads `clock` block by block while `go_on` returns true. It is called once per block.
    pub fn slice<C: Clock>(&mut self, clock: &C, outside: &Outside, mut go_on: impl FnMut() -> bool) {
        let mut buffer = [0u64; BUFFER];
        // Blocks are compared only within a slice: the next slice may run on another CPU.
        let mut last = None;
        loop {
            self.blocks += 1;
            if self.blocks.is_multiple_of(CLASSIC_EVERY) {
                let block = self.classic.run(clock);
                self.add_backward(block.backward);
                self.compare_blocks(last, block.first);
                last = Some(block.last);
            } else {
                let before = outside.clock.read_ordered();
                clock.fill(&mut buffer);
                let after = outside.clock.read_ordered();
                self.compare_blocks(last, buffer[0]);
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
                Err(_) => self.add_backward(Backward { steps: 1, largest: ticks.unsigned_abs() }),
            }
        }
        self.buffers.push(ticks_between(buffer[0], buffer[BUFFER - 1]) as f64 / (BUFFER - 1) as f64);
    }

    /// Looks for a backward step between two blocks. Other work passes between them, so a forward difference means
    /// nothing.
    fn compare_blocks(&mut self, last: Option<u64>, first: u64) {
        if let Some(ticks @ ..0) = last.map(|last| ticks_between(last, first)) {
            self.add_backward(Backward { steps: 1, largest: ticks.unsigned_abs() });
        }
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

/// Returns the cost of timing nothing with `clock`, in its ticks: the minimum of many attempts.
pub fn timing_cost(clock: &dyn Clock) -> f64 {
    let attempt = |_| ticks_between(clock.read_ordered(), clock.read_ordered());
    (0..1000).map(attempt).filter(|ticks| *ticks >= 0).min().unwrap_or(0) as f64
}

/// A difference above this multiple of the median is a gap, and not a read.
pub const GAP_FACTOR: f64 = 16.0;
/// The minimum length of a gap: an interrupt takes the kernel a microsecond or more.
pub const MIN_GAP: Nanos = Nanos(1000.0);
