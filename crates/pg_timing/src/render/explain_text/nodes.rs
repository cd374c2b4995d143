//! Cells of the plan's table.

use super::digits;
use crate::report::{ExplainReport, ExplainedNode, Range, SelfTime};

/// Returns the node's rank by corrected self time, and in parentheses its rank by reported self time if that changed. `?`: the
/// plan does not show the node's self time.
pub fn rank(node: &ExplainedNode, report: &ExplainReport) -> String {
    match rank_change(node, report) {
        Some((reported, corrected)) => format!("{corrected} ({reported})"),
        None => node.corrected_rank.map_or("?".into(), |rank| rank.to_string()),
    }
}

/// Returns the node's ranks by reported and by corrected self time, if the change exceeds the errors.
///
/// Returns `None` for nodes below 5% of the time, and for captured plans, whose ranks are not precise enough.
pub fn rank_change(node: &ExplainedNode, report: &ExplainReport) -> Option<(usize, usize)> {
    let others = report.nodes.iter().map(SelfTime::of);
    let changed = || SelfTime::of(node).has_other_rank(others, report.reported_ms, report.corrected_ms.estimate);
    node.rank.zip(node.corrected_rank).filter(|_| report.runs.is_some() && changed())
}

/// Returns the reported time in ms, or its upper bound if it is mostly rounding error: EXPLAIN rounds each loop.
pub fn reported(node: &ExplainedNode) -> String {
    match is_mostly_rounding(node) {
        true => format!("<{}", digits(node.reported_ms + node.rounded_ms)),
        false => digits(node.reported_ms),
    }
}

/// Returns the corrected time in ms, or its upper bound if the lower bound is 0.
pub fn corrected(node: &ExplainedNode) -> String {
    let Range { low, estimate, high } = node.corrected_ms;
    if low > 0.0 || high == 0.0 { digits(estimate) } else { format!("<{}", digits(high).trim_start_matches('<')) }
}

/// Returns the clock's share of the reported time, or `?` if rounding hides it.
pub fn clock_share(node: &ExplainedNode) -> String {
    if is_mostly_rounding(node) { "?".into() } else { format!("{:.0}%", 100.0 * node.clock_share) }
}

fn is_mostly_rounding(node: &ExplainedNode) -> bool {
    node.rounded_ms > node.reported_ms / 4.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LiveRuns;

    fn node(rank: usize, corrected_rank: usize, corrected_self_ms: f64, margin: f64) -> ExplainedNode {
        ExplainedNode {
            rank: Some(rank),
            corrected_rank: Some(corrected_rank),
            reported_self_ms: 100.0 / rank as f64,
            corrected_self_ms,
            corrected_self_off_ms: margin,
            ..Default::default()
        }
    }

    #[test]
    fn rank_changes_within_the_errors_are_not_reported() {
        for (margin, change) in [(1.0, Some((1, 2))), (10.0, None)] {
            let nodes = vec![node(1, 2, 50.0, margin), node(2, 1, 55.0, margin)];
            let runs = Some(LiveRuns::default());
            let report = ExplainReport { nodes, runs, reported_ms: 200.0, ..Default::default() };
            assert_eq!(rank_change(&report.nodes[0], &report), change);
            assert_eq!(rank(&report.nodes[0], &report), if change.is_some() { "2 (1)" } else { "2" });
            let mut imprecise = report;
            imprecise.nodes.iter_mut().for_each(|node| node.reported_self_off_ms = 60.0);
            assert_eq!(rank_change(&imprecise.nodes[0], &imprecise), None);
        }
    }

    #[test]
    fn a_corrected_time_without_a_lower_bound_is_an_upper_bound() {
        let cell = |low: f64, high: f64| {
            let corrected_ms = Range::between(low, high);
            corrected(&ExplainedNode { corrected_ms, ..Default::default() })
        };
        assert_eq!([cell(90.0, 110.0), cell(0.0, 110.0), cell(0.0, 0.0)], ["100", "<110", "0"]);
        assert_eq!(cell(0.0, 0.0001), "<0.001");
    }

    #[test]
    fn times_that_are_mostly_rounding_are_upper_bounds() {
        let cells = |reported_ms: f64, rounded_ms: f64| {
            let node = ExplainedNode { reported_ms, rounded_ms, clock_share: 0.5, ..Default::default() };
            (reported(&node), clock_share(&node))
        };
        assert_eq!(cells(0.0, 500.0), ("<500".into(), "?".into()));
        assert_eq!(cells(1000.0, 500.0).1, "?");
        assert_eq!(cells(3000.0, 500.0), ("3000".into(), "50%".into()));
    }
}
