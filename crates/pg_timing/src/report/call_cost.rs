//! The cost of a timed call of a plan node, from the read cost of the clock.

use super::Range;

/// Read costs per call, as a multiple of one read. A call reads the clock twice, and the processor overlaps a part of
/// that with other work. Measured over TPC-H's queries and scans, with reads of 20 to 45 ns: 0.2 to 2.3 reads per call.
const READS_FAST_CLOCK: (f64, f64) = (0.2, 2.3);
/// The same for slow clocks, from published cases and slowed servers with reads of 720 ns to 7.4 us. Reading a device
/// register does not overlap with other work.
const READS_SLOW_CLOCK: (f64, f64) = (1.4, 2.1);
/// Above this, a read is a system call or a device access.
const SLOW_NS: f64 = 100.0;

/// The cost of row counting per call, and the same again for buffer counting; measured as TIMING OFF minus baseline.
/// It was 6 to 8 ns on a host where a read takes 20 ns, and 9 to 17 ns on a slower or shared one with reads of 45 ns.
const COUNTING_NS: (f64, f64) = (10.0, 20.0);
const COUNTING_READS: f64 = 0.5;

/// Returns the bounds of a call's clock reads in ns.
pub fn clock_reads_ns(read_ns: f64) -> Range {
    let (low, high) = if read_ns < SLOW_NS { READS_FAST_CLOCK } else { READS_SLOW_CLOCK };
    Range::between(low * read_ns, high * read_ns)
}

/// Returns the bounds of a call's row and buffer counting in ns.
///
/// The read cost of the system clock shows how fast the processor is. Without it, the slower figure applies.
pub fn counting_ns(buffers_counted: bool, system_read_ns: Option<f64>) -> Range {
    let (fast, slow) = COUNTING_NS;
    let rows = system_read_ns.map_or(slow, |ns| (COUNTING_READS * ns).clamp(fast, slow));
    Range::between(0.0, if buffers_counted { 2.0 * rows } else { rows })
}

/// Returns the approximate upper bound of the overhead of EXPLAIN ANALYZE per row and plan node, rounded up to two
/// digits.
///
/// It contains the two clock reads and the code around them, and the counting of rows and buffers: PostgreSQL 18 counts
/// buffers by default. The bounds are those of our test statements, so another statement can exceed them a little.
pub fn overhead_per_node_ns(read_ns: f64) -> f64 {
    // A clock that is just slow costs no less than one that is just fast.
    let reads = clock_reads_ns(read_ns).high.max(READS_FAST_CLOCK.1 * read_ns.min(SLOW_NS));
    round_up(reads + counting_ns(true, Some(read_ns)).high)
}

/// Rounds up to two significant digits, because a bound has no more.
fn round_up(ns: f64) -> f64 {
    if ns <= 0.0 || !ns.is_finite() {
        return ns;
    }
    let unit = 10f64.powf(ns.log10().floor() - 1.0);
    // Without the small subtraction, a number with two digits could get the next one.
    (ns / unit - 1e-9).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_a_multiple_of_the_read_cost() {
        assert_eq!(clock_reads_ns(20.0), Range { low: 4.0, estimate: 25.0, high: 46.0 });
        assert_eq!(clock_reads_ns(1000.0), Range { low: 1400.0, estimate: 1750.0, high: 2100.0 });
        assert_eq!(clock_reads_ns(100.0).low, 140.0);
    }

    #[test]
    fn counting_costs_more_on_slower_processors_and_with_buffers() {
        let high = |buffers, read_ns| counting_ns(buffers, read_ns).high;
        assert_eq!((high(false, Some(5.0)), high(false, Some(30.0)), high(false, Some(800.0))), (10.0, 15.0, 20.0));
        assert_eq!((high(false, None), high(true, Some(30.0)), counting_ns(true, None).low), (20.0, 30.0, 0.0));
    }

    /// The figures of README's example: 24.3 ns per read, and 61.8 ns per row and plan node.
    #[test]
    fn the_overhead_exceeds_two_reads_and_the_measured_figure() {
        let overhead = overhead_per_node_ns(24.3);
        assert!((61.8..2.0 * 61.8).contains(&overhead), "{overhead}");
        let close = |actual: f64, expected: f64| assert!((actual - expected).abs() < 1e-6, "{actual}, not {expected}");
        // 2.3 * 20 + 20, 2.3 * 30.2 + 30.2, 2.1 * 7400 + 40
        close(overhead_per_node_ns(20.0), 66.0);
        close(overhead_per_node_ns(30.2), 100.0);
        close(overhead_per_node_ns(7400.0), 16_000.0);
        assert!(overhead_per_node_ns(101.0) >= overhead_per_node_ns(99.0));
    }

    #[test]
    fn bounds_are_rounded_up_to_two_digits() {
        let close = |actual: f64, expected: f64| assert!((actual - expected).abs() < 1e-9, "{actual}, not {expected}");
        close(round_up(72.6), 73.0);
        close(round_up(73.0), 73.0);
        close(round_up(99.1), 100.0);
        close(round_up(1234.0), 1300.0);
        close(round_up(0.0), 0.0);
    }
}
