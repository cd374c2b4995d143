//! The calls of a plan's nodes per execution, with their range, and what timing them costs.

use super::assumed_run::{Share, assumed_run};
use super::entries::Figures;
use super::guesses::{TableRows, has_guesses, has_guesses_with_values, with_fewest_rows, with_most_rows};
use super::planner_node::PlannerNode;
use crate::report::{CallCost, NS_PER_MS, Range};
use crate::server::explain::{Plan, is_inner};

/// No call takes less. With two calls per row, PostgreSQL's fastest nodes return a row in 20 ns on fast processors.
pub const MIN_CALL_NS: f64 = 5.0;

/// If the planner guesses, the number of calls can be higher than the estimate by at most this part of the factor between the
/// estimate and all rows of the tables, on a logarithmic scale. That was so for 9 of 10 statements of `tests/advise/bench
/// statements`.
const GUESS_QUANTILE: f64 = 0.75;
/// The same for other errors, for 9 of 10 statements: a factor of the number of calls, with joins and without.
const JOIN_ERROR: f64 = 2.5;
const SCAN_ERROR: f64 = 1.25;
/// Calls of usual nodes take at least this number of times the minimum.
const IMPLAUSIBLE: f64 = 3.0;

/// Node calls of one execution of a statement, over all processes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCalls {
    pub calls: Range,
    pub plan: Plan,
}

impl NodeCalls {
    /// Returns the calls that the plan and the figures of the statement suggest. The plan is one for any values of its
    /// parameters.
    pub fn of(root: PlannerNode, figures: Figures, tables: &TableRows) -> NodeCalls {
        let is_guess = has_guesses(&root);
        let error_of = if is_guess || root.joins() > 0 { JOIN_ERROR } else { SCAN_ERROR };
        NodeCalls::in_range(root, figures, tables, is_guess, error_of)
    }

    /// Returns the same from a plan for the values of one of its executions. The planner has statistics for most conditions
    /// with values. Those for expressions, and values of other executions, have the error of a join.
    pub fn with_values(root: PlannerNode, figures: Figures, tables: &TableRows) -> NodeCalls {
        let is_guess = has_guesses_with_values(&root);
        NodeCalls::in_range(root, figures, tables, is_guess, JOIN_ERROR)
    }

    /// Returns whether a plan for the values of an execution can be better.
    pub fn depend_on_values(root: &PlannerNode) -> bool {
        has_guesses(root) || root.joins() > 0
    }

    fn in_range(root: PlannerNode, figures: Figures, tables: &TableRows, is_guess: bool, error: f64) -> NodeCalls {
        let rows = figures.rows_per_call();
        let plan = assumed_run(&root, rows, Share::Half);
        let likely = all_calls(&plan);
        // A lookup of a single row has no error.
        let has_rows = plan.nodes.iter().any(|node| node.node.rows.is_some_and(|rows| rows.per_loop > 1.0));
        let error = if has_rows || error == JOIN_ERROR { error } else { 1.0 };
        let (fewest, most) = match is_guess {
            false => (likely.low, likely.high),
            true => {
                let fewest = assumed_run(&with_fewest_rows(root.clone()), rows, Share::Half);
                let most = assumed_run(&with_most_rows(root, tables, false), rows, Share::Most);
                (all_calls(&fewest).low, all_calls(&most).high)
            }
        };
        // The time of an execution limits its calls.
        let limit = (figures.mean_ms() * NS_PER_MS / MIN_CALL_NS * processes(&plan)).max(1.0);
        // Each returned row is a call of the root.
        let least = rows.unwrap_or(0.0).clamp(1.0, limit);
        // So many calls of so little time are not plausible, and such an estimate says nothing about the lower bound.
        let is_plausible = likely.estimate <= if is_guess { limit / IMPLAUSIBLE } else { limit };
        let low = if is_plausible { (fewest.min(likely.low) / error).max(least) } else { least };
        let guessed = likely.estimate * (most / likely.estimate).max(1.0).powf(GUESS_QUANTILE);
        let high = guessed.max(likely.high * error).clamp(low, limit.max(low));
        NodeCalls { calls: Range { low, estimate: likely.estimate.clamp(low, high), high }, plan }
    }

    /// Returns the most processes that execute the plan at a time.
    pub fn processes(&self) -> f64 {
        processes(&self.plan)
    }

    /// Returns the mean cost of the clock reads of one call, in ns.
    pub fn clock_ns(&self, cost: &CallCost) -> f64 {
        let nodes = &self.plan.nodes;
        let calls = |index: usize| nodes[index].calls.estimate * nodes[index].processes;
        let all: f64 = (0..nodes.len()).map(calls).sum();
        let each = |index: usize| calls(index) * cost.clock_ns(&nodes[index].node.kind, is_inner(nodes, index));
        if all > 0.0 { (0..nodes.len()).map(each).sum::<f64>() / all } else { cost.usual_clock_ns() }
    }
}

fn processes(plan: &Plan) -> f64 {
    plan.nodes.iter().map(|node| node.processes).fold(1.0, f64::max)
}

/// Returns the calls of all nodes by all processes.
fn all_calls(plan: &Plan) -> Range {
    plan.nodes.iter().fold(Range::default(), |sum, node| sum + node.calls.times(node.processes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(rows: f64, filter: &str) -> PlannerNode {
        PlannerNode { kind: "Index Scan".into(), rows, filter: Some(filter.into()), ..PlannerNode::default() }
    }

    fn calls(root: PlannerNode, rows: f64, mean_ms: f64) -> Range {
        let figures = Figures { calls: 10.0, rows: 10.0 * rows, exec_ms: 10.0 * mean_ms };
        NodeCalls::of(root, figures, &TableRows::new()).calls
    }

    #[test]
    fn a_lookup_of_one_row_has_no_error() {
        // The caller may stop after the row.
        assert_eq!(calls(scan(1.0, "(aid = $1)"), 1.0, 0.05), Range { low: 1.0, estimate: 2.0, high: 2.0 });
    }

    #[test]
    fn a_guess_has_a_wide_range_within_the_time_of_the_execution() {
        let count = |filter: &str, mean_ms| {
            let aggregate = PlannerNode {
                kind: "Aggregate".into(),
                rows: 1.0,
                plans: vec![scan(1000.0, filter)],
                ..PlannerNode::default()
            };
            calls(aggregate, 1.0, mean_ms)
        };
        let (known, guess) = (count("(a = $1)", 100.0), count("(a > $1)", 100.0));
        assert_eq!(known.estimate, 1003.0);
        assert!((known.high - SCAN_ERROR * 1003.0).abs() < 1e-9, "{known:?}");
        assert!(guess.high > 10.0 * guess.estimate && guess.low >= 1000.0 / JOIN_ERROR, "{guess:?}");
        // 1 us is not enough for a thousand calls.
        let short = count("(a > $1)", 0.001);
        assert_eq!((short.low, short.high), (1.0, 1000.0 / MIN_CALL_NS));
    }

    #[test]
    fn the_cost_of_a_call_depends_on_the_kinds_of_nodes() {
        let cost = CallCost::new(20.0, None, None, false);
        let node_calls = |kind: &str| {
            let root = PlannerNode { kind: kind.into(), rows: 1000.0, ..PlannerNode::default() };
            NodeCalls::of(root, Figures::default(), &TableRows::new()).clock_ns(&cost)
        };
        assert_eq!(node_calls("Hash Join"), cost.clock_ns("Hash Join", false));
        assert!(node_calls("Append") < node_calls("Hash Join"));
    }

    proptest! {
        #[test]
        fn the_bounds_are_in_order(rows in 0.0..1e9, actual in 0.0..1e9, ms in 0.0..1e6, guess: bool) {
            let range = calls(scan(rows, if guess { "(a > $1)" } else { "(a = $1)" }), actual, ms);
            prop_assert!(1.0 <= range.low && range.low <= range.estimate && range.estimate <= range.high, "{range:?}");
        }
    }
}
