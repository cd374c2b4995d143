//! What timing adds to a function call: two reads with work before, between and after them.
//!
//! The read cost does not show this. Some reads wait for all work before them, and hold up the work after them: then two
//! reads add more than twice the read cost. Other reads overlap with that work, and add less. The server times each call
//! of a plan node in the same way.

use super::Outside;
use std::hint::black_box;
use timing_clock::{Clock, ticks_between};

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
