//! The overhead model: how much time EXPLAIN ANALYZE adds to a plan, and how much of it belongs to a part of the plan.

use crate::report::Range;
use crate::statistics::root_sum_squares;

/// The overhead of a plan, to be shared among its calls. All values are in ms.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// execution time of the plan, as reported
    pub reported: f64,
    /// the plan's corrected time
    pub whole: Range,
    /// margin of the plan's corrected time
    pub baseline_margin: f64,
    /// overhead of one call
    pub per_call: f64,
    /// margin of the overhead of all calls together
    pub calls_margin: f64,
    /// overhead that calls cannot explain
    pub unexplained: f64,
    /// the part of `per_call` that is clock reads
    pub clock_per_call: f64,
    /// the plan's corrected time, if the node times hold for other sessions, too; 0 for a single run
    pub of_any_session: f64,
}

impl Charge {
    /// Returns the plan's time without overhead.
    fn baseline(&self, total_calls: f64) -> f64 {
        (self.reported - self.per_call * total_calls - self.unexplained).max(0.0)
    }

    /// Returns the time of a part of the plan without overhead.
    ///
    /// The overhead of the part's calls is subtracted. The unexplained overhead is assumed to slow all parts by one
    /// factor.
    pub fn corrected(&self, reported: f64, calls: f64, total_calls: f64) -> f64 {
        let without_calls = self.baseline(total_calls) + self.unexplained;
        let unexplained_share = if without_calls > 0.0 { self.unexplained / without_calls } else { 0.0 };
        (reported - self.per_call * calls).clamp(0.0, reported.max(0.0)) * (1.0 - unexplained_share)
    }

    /// Returns a part's corrected time as a fraction of the plan's corrected time.
    pub fn share(&self, corrected: f64, total_calls: f64) -> f64 {
        let baseline = self.baseline(total_calls);
        if baseline > 0.0 { (corrected / baseline).min(1.0) } else { 1.0 }
    }

    /// Returns the margin that comes from dividing the overhead among the parts: only the overhead of all calls
    /// together is known.
    pub fn distribution_margin(&self, share: f64, calls: f64, total_calls: f64) -> f64 {
        let share_of_calls = (calls / total_calls.max(1.0)).min(1.0);
        root_sum_squares([
            self.node_margin() * calls * (1.0 - share_of_calls),
            // The plan's time is fixed: less overhead of the calls means more time elsewhere.
            self.calls_margin * (share_of_calls - share).abs(),
            // All of the unexplained overhead may fall into this part or outside it.
            two_point_margin(self.unexplained, share),
            self.of_any_session * (SESSION_SHARE * share).hypot(SESSION_TIME) * (1.0 - share),
        ])
    }

    /// Returns the margin of the overhead in a node's own time, in ms per call. Half of a call's overhead is assumed to
    /// fall into that time.
    pub fn half_call_margin(&self) -> f64 {
        (HALF_ERROR * self.per_call).min(max_overlap(self.per_call) / 2.0)
    }

    /// Returns by how much the overhead of a node's call may differ from that of the average call, in ms.
    fn node_margin(&self) -> f64 {
        (NODE_ERROR * self.per_call).min(max_overlap(self.per_call))
    }
}

/// The overhead of a node's call differs by this part from that of the average call: the 36 kinds of nodes that were measured
/// differ by 12% (two standard deviations), and the nodes of one kind by 20% (`bench/recordings/calls`).
const NODE_ERROR: f64 = 0.23;
/// This part of a call's overhead may fall to the other side of the node's time: two clock reads of equal length split it in
/// half.
const HALF_ERROR: f64 = 0.1;
/// By which part a node's time differs in another session, whose memory has another layout.
const SESSION_SHARE: f64 = 0.1;
/// By which part of the statement's time any node's time differs in another session.
const SESSION_TIME: f64 = 0.01;

/// Returns the 95% margin of a part's share of `ms` if all of it falls either into this part, with the probability `share`,
/// or outside it: two standard deviations, and at most the distance to the farther one of both cases.
fn two_point_margin(ms: f64, share: f64) -> f64 {
    ms * (2.0 * (share * (1.0 - share)).sqrt()).min(share.max(1.0 - share))
}

/// Returns how much of the overhead per call the processor can overlap with other work, in ms.
///
/// That is at most about 50 ns. Beyond that, the cost of a slow clock differs by up to 5% between nodes, because its system
/// call evicts cache lines.
fn max_overlap(per_call: f64) -> f64 {
    const OVERLAP_MS: f64 = 50e-6;
    const CACHE_EVICTION: f64 = 0.05;
    OVERLAP_MS + CACHE_EVICTION * per_call
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of 200 ms with 1000 calls: 90 ms in its calls, 10 ms unexplained, 100 ms baseline.
    const CHARGE: Charge = Charge {
        reported: 200.0,
        whole: Range { low: 0.0, estimate: 56.2, high: 200.0 },
        baseline_margin: 2.0,
        per_call: 0.09,
        calls_margin: 4.0,
        unexplained: 10.0,
        clock_per_call: 0.08,
        of_any_session: 0.0,
    };

    #[test]
    fn parts_add_up_to_the_baseline() {
        let parts = [(120.0, 400.0), (80.0, 600.0)];
        let corrected = parts.map(|(reported, calls)| CHARGE.corrected(reported, calls, 1000.0));
        assert!((corrected[0] - 84.0 * 100.0 / 110.0).abs() < 1e-9, "{corrected:?}");
        assert!((corrected.iter().sum::<f64>() - 100.0).abs() < 1e-9, "{corrected:?}");
        assert!((CHARGE.share(corrected[1], 1000.0) - 26.0 / 110.0).abs() < 1e-9);
    }

    #[test]
    fn corrected_times_are_never_negative_and_never_above_reported() {
        assert_eq!(CHARGE.corrected(5.0, 1000.0, 1000.0), 0.0);
        assert_eq!(CHARGE.corrected(-5.0, 0.0, 1000.0), 0.0);
        assert!(CHARGE.corrected(5.0, -1000.0, 1000.0) <= 5.0);
        assert_eq!(CHARGE.share(500.0, 1000.0), 1.0);
        // The calls explain all of the time.
        assert_eq!(Charge { per_call: 1.0, unexplained: 0.0, ..CHARGE }.corrected(5.0, 1.0, 1000.0), 4.0);
        assert_eq!(Charge { per_call: 1.0, ..CHARGE }.share(500.0, 1000.0), 1.0);
    }

    #[test]
    fn the_margins_of_a_call_are_parts_of_a_fast_call_and_bounded_for_a_slow_one() {
        let margins = |per_call: f64| {
            let charge = Charge { per_call, ..CHARGE };
            [charge.half_call_margin(), charge.node_margin()].map(|ms| (ms * 1e9).round())
        };
        assert_eq!(margins(40e-6), [4e3, 9.2e3].map(f64::round));
        // 15 us per call: 50 ns and 5%, or half of that.
        assert_eq!(margins(15e-3), [400e3, 800e3]);
    }

    #[test]
    fn another_session_differs_by_parts_of_both_times() {
        let margin =
            |share| Charge { of_any_session: 100.0, ..CHARGE }.distribution_margin(share, 1000.0 * share, 1000.0);
        let without = |share| CHARGE.distribution_margin(share, 1000.0 * share, 1000.0);
        assert_eq!(margin(1.0), 0.0);
        // 10% of 40 ms and 1% of 100 ms, times the share of the other nodes.
        assert!((margin(0.4).powi(2) - without(0.4).powi(2) - (16.0 + 1.0) * 0.36).abs() < 1e-9);
    }

    #[test]
    fn a_part_with_all_calls_and_all_time_has_no_distribution_margin() {
        assert_eq!(CHARGE.distribution_margin(1.0, 1000.0, 1000.0), 0.0);
        let margin = |charge: Charge| charge.distribution_margin(0.5, 1000.0, 1000.0);
        // calls: 4 ms x 0.5; unexplained: 10 ms x 0.5.
        assert!((margin(CHARGE) - 29f64.sqrt()).abs() < 1e-9);
        let half_of_calls = |charge: Charge| charge.distribution_margin(0.5, 500.0, 1000.0);
        let overlap = max_overlap(0.09) * 250.0;
        assert!((half_of_calls(CHARGE) - overlap.hypot(5.0)).abs() < 1e-9);
    }

    /// All margins that are combined in quadrature are of 95%.
    #[test]
    fn unexplained_overhead_may_fall_into_a_part_or_outside_it() {
        let margins = [0.0, 0.02, 0.1, 0.5, 0.9, 1.0].map(|share| two_point_margin(100.0, share).round());
        assert_eq!(margins, [0.0, 28.0, 60.0, 50.0, 60.0, 0.0]);
    }
}
