//! What a timed call takes more than one that is not.

use crate::report::Range;
use crate::server::explain::plan::Explained;

/// A call reads the clock twice. How much of that the processor hides behind other work depends on the
/// query: over TPC-H's queries and scans, calls took 0.2 to 2.3 reads where a read takes 20 to 45 ns.
const OF_A_FAST_CLOCK: (f64, f64) = (0.2, 2.3);
/// Published cases and slowed servers, from 720 ns to 7.4 us a read: there is nothing to hide a
/// device's register behind.
const OF_A_SLOW_CLOCK: (f64, f64) = (1.4, 2.1);
/// From here a clock is no instruction any more.
const SLOW_NS: f64 = 100.0;

/// Counting rows takes a call some ns more, measured as TIMING OFF against plain, and buffers as much
/// again: 6 to 8 each where a read of the system's clock takes 20 ns, 9 to 17 where one of 45 ns tells
/// that the processor is slower, or shared.
const COUNTING_NS: (f64, f64) = (10.0, 20.0);
const COUNTING_READS: f64 = 0.5;

/// Two reads of the clock, for a call by which `read_ns` passes.
pub fn clock(read_ns: f64) -> Range {
    let (low, high) = if read_ns < SLOW_NS { OF_A_FAST_CLOCK } else { OF_A_SLOW_CLOCK };
    Range::between(low * read_ns, high * read_ns)
}

/// What is counted beside, by a read of the system's clock.
pub fn counting(explained: &Explained, system_ns: Option<f64>) -> Range {
    let (least, most) = COUNTING_NS;
    let each = system_ns.map_or(most, |ns| (COUNTING_READS * ns).clamp(least, most));
    Range::between(0.0, if buffers(explained) { 2.0 * each } else { each })
}

/// Whether they were counted. A node that found none prints none as text.
pub fn buffers(explained: &Explained) -> bool {
    explained.plan.any(&|node| node.buffers.is_some())
}
