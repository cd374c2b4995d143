//! The cost of a timed call of a plan node, from the read cost of the clock.
//!
//! A timed call reads the clock twice and counts a row. The processor overlaps a part of the reads with other work, but
//! at most [`OVERLAP_NS`] per read: beyond that, it waits. So the clock reads of a call cost
//! `reads * min(read, OVERLAP_NS) + SLOW_READS * max(read - OVERLAP_NS, 0)`. `reads` depends on the kind of node. Row
//! counting and buffer counting are added. `tests/explain/call_costs` measures and fits the figures in
//! `call_cost_table.rs`.

use super::Range;
use super::call_cost_table::{ANY_KIND, ERRORS, KINDS, OVERLAP_NS, SLOW_READS};

/// The lowest and the highest cost of row counting per call, in ns. Buffer counting costs the same again.
///
/// Measured as the difference between TIMING OFF and the baseline: 6 to 8 ns on a host where a clock read takes 20 ns,
/// and 9 to 17 ns on a slower or shared host where it takes 45 ns. The read cost of a slow clock does not show the
/// processor's speed, so the highest cost is assumed there.
const COUNTING_NS: (f64, f64) = (5.0, 17.0);
/// The cost of row counting per call, in reads of the system clock.
const COUNTING_READS: f64 = 0.33;
/// The cost of row counting per call if the system clock's read cost is not known.
const USUAL_COUNTING_NS: f64 = 8.0;

/// The smallest cost of a call in any measured plan, in reads. The processor overlapped nearly all of it with other
/// work.
const LEAST_READS: f64 = 0.2;
/// The same for the part of a read beyond the overlap. It comes from a published plan with reads of 723 ns.
const LEAST_SLOW_READS: f64 = 1.4;

/// The costs of timed calls on a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallCost {
    read_ns: f64,
    counting_ns: f64,
}

impl CallCost {
    /// Returns the costs for a clock whose read takes `read_ns`. `system_read_ns` is the read cost of the system clock.
    /// It shows how fast the processor is.
    pub fn new(read_ns: f64, system_read_ns: Option<f64>, counts_buffers: bool) -> CallCost {
        let (fastest, slowest) = COUNTING_NS;
        let rows = system_read_ns.map_or(USUAL_COUNTING_NS, |ns| (COUNTING_READS * ns).clamp(fastest, slowest));
        CallCost { read_ns, counting_ns: if counts_buffers { 2.0 * rows } else { rows } }
    }

    /// Returns the cost of one call's clock reads, in ns. `inner`: the node is on the inner side of a nested loop.
    pub fn clock_ns(&self, kind: &str, inner: bool) -> f64 {
        self.reads_ns(reads(kind, inner).unwrap_or(ANY_KIND))
    }

    /// Returns the cost of one call's clock reads for a usual kind of node, in ns.
    pub fn usual_clock_ns(&self) -> f64 {
        self.reads_ns(ANY_KIND)
    }

    fn reads_ns(&self, reads: f64) -> f64 {
        reads * self.read_ns.min(OVERLAP_NS) + SLOW_READS * (self.read_ns - OVERLAP_NS).max(0.0)
    }

    /// Returns the cost of row counting and buffer counting of one call, in ns.
    pub fn counting_ns(&self) -> f64 {
        self.counting_ns
    }

    /// Returns the highest cost of row counting per call, in ns, including buffer counting if `counts_buffers` is set.
    pub fn max_counting_ns(counts_buffers: bool) -> f64 {
        if counts_buffers { 2.0 * COUNTING_NS.1 } else { COUNTING_NS.1 }
    }

    /// Returns the relative error of the estimated overhead of a whole plan: 92% of the test statements were within it.
    pub fn error(&self) -> f64 {
        ERRORS.iter().find(|(most_ns, _)| self.read_ns < *most_ns).map_or(1.0, |(_, error)| *error)
    }

    /// Returns the smallest and the largest cost of one call's clock reads, over all kinds of nodes, in ns.
    pub fn bounds_ns(&self) -> Range {
        let overlapped = self.read_ns.min(OVERLAP_NS);
        let low = LEAST_READS * overlapped + LEAST_SLOW_READS * (self.read_ns - overlapped);
        Range::between(low, self.reads_ns(KINDS.iter().map(|(.., reads)| *reads).fold(SLOW_READS, f64::max)))
    }
}

/// Returns the cost of one call in reads, or `None` if this kind of node was not measured. If it was measured only on
/// the other side of a nested loop, that figure counts.
fn reads(kind: &str, inner: bool) -> Option<f64> {
    let on_side = |side| KINDS.iter().find(|(name, is_inner, _)| *name == kind && *is_inner == side);
    on_side(inner).or(on_side(!inner)).map(|(.., reads)| *reads)
}

/// Returns whether calls of this kind of node were measured.
pub fn is_measured(kind: &str) -> bool {
    KINDS.iter().any(|(name, ..)| *name == kind)
}

/// Returns the approximate upper bound of the overhead of EXPLAIN ANALYZE per row and plan node, rounded up to two
/// digits.
///
/// It contains the two clock reads and the code around them, and the counting of rows and buffers: PostgreSQL 18 counts
/// buffers by default. The bound includes the error that 92% of our test statements kept, so another statement can
/// exceed it.
pub fn overhead_per_node_ns(read_ns: f64) -> f64 {
    let cost = CallCost::new(read_ns, Some(read_ns), true);
    let overlapped = CallCost { read_ns: read_ns.min(OVERLAP_NS), ..cost };
    // The error of the part that the processor may overlap. Beyond that, the cost is nearly the same for all
    // statements.
    let error = overlapped.error() * overlapped.bounds_ns().high;
    round_up(cost.bounds_ns().high + error + cost.counting_ns)
}

/// Returns the figure rounded up to two significant digits: more digits would suggest a precision that a bound does not
/// have.
fn round_up(ns: f64) -> f64 {
    if ns <= 0.0 || !ns.is_finite() {
        return ns;
    }
    let unit = 10f64.powf(ns.log10().floor() - 1.0);
    // Without the small subtraction, an error of the division could raise a number that already has two digits.
    (ns / unit - 1e-9).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nanosecond_beyond_the_overlap_counts_twice() {
        let clock_ns = |read_ns: f64| CallCost::new(read_ns, None, false).clock_ns("Seq Scan", false);
        let overlapped = reads("Seq Scan", false).unwrap();
        assert!((clock_ns(20.0) - 20.0 * overlapped).abs() < 1e-9);
        assert!((clock_ns(1000.0) - clock_ns(900.0) - 100.0 * SLOW_READS).abs() < 1e-9);
        assert!((clock_ns(OVERLAP_NS) - OVERLAP_NS * overlapped).abs() < 1e-9);
    }

    #[test]
    fn the_side_of_a_nested_loop_matters_if_it_was_measured() {
        let cost = CallCost::new(20.0, None, false);
        for (kind, inner, reads) in KINDS {
            assert_eq!(cost.clock_ns(kind, inner), 20.0 * reads);
            assert!(reads >= 0.0 && is_measured(kind), "{kind}");
        }
        assert_eq!(cost.clock_ns("Quantum Scan", true), cost.usual_clock_ns());
        assert!(!is_measured("Quantum Scan"));
    }

    #[test]
    fn counting_costs_more_on_slower_processors_and_with_buffers() {
        let ns = |system: Option<f64>, buffers| CallCost::new(20.0, system, buffers).counting_ns();
        assert_eq!([ns(Some(9.0), false), ns(Some(30.0), false), ns(Some(49.0), true)], [5.0, 9.9, 2.0 * 0.33 * 49.0]);
        assert_eq!([ns(Some(800.0), false), ns(None, true)], [17.0, 16.0]);
    }

    /// The largest overhead that was measured on a host with reads of 24.3 ns was 61.8 ns per row and plan node.
    #[test]
    fn the_overhead_exceeds_two_reads_and_the_measured_figure() {
        let overhead = overhead_per_node_ns(24.3);
        assert!((61.8..2.0 * 61.8).contains(&overhead), "{overhead}");
        assert!(overhead_per_node_ns(7400.0) >= 14_800.0);
        let ns: Vec<f64> = (1..2000).map(|read_ns| overhead_per_node_ns(f64::from(read_ns))).collect();
        assert!(ns.is_sorted(), "a slower clock costs no less");
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
