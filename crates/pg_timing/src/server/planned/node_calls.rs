//! The calls of a plan's nodes per execution, with their range, and what timing them costs.

use super::assumed_run::{Share, assumed_run};
use super::entries::Figures;
use super::guesses::{TableRows, has_guesses, with_fewest_rows, with_most_rows};
use super::planner_node::PlannerNode;
use crate::report::{CallCost, NS_PER_MS, Range};
use crate::server::explain::{Plan, is_inner};

/// No call takes less. With two calls per row, PostgreSQL's fastest nodes return a row in 20 ns on fast processors.
pub const MIN_CALL_NS: f64 = 5.0;

/// If the planner guesses, it can guess too few rows. 9 of 10 statements of `tests/advise/bench calls` had at most this part, in
/// the logarithm, of the distance from the estimate to all rows of the tables.
const GUESS_QUANTILE: f64 = 0.75;
/// Calls of usual nodes take at least this number of times the minimum.
const IMPLAUSIBLE: f64 = 3.0;

/// Node calls of one execution of a statement, over all processes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCalls {
    pub calls: Range,
    pub plan: Plan,
}

impl NodeCalls {
    /// Returns the calls that the plan and the figures of the statement suggest.
    pub fn of(root: PlannerNode, figures: Figures, tables: &TableRows) -> NodeCalls {
        let rows = figures.rows_per_call();
        let (joins, is_guess) = (root.joins(), has_guesses(&root));
        let plan = assumed_run(&root, rows, Share::Half);
        let likely = all_calls(&plan);
        let error = error_factor(&plan, joins, is_guess);
        let (fewest, most) = match is_guess {
            false => (likely.low, likely.high),
            true => {
                let fewest = assumed_run(&with_fewest_rows(root.clone()), rows, Share::Half);
                let most = assumed_run(&with_most_rows(root, tables, false), rows, Share::Most);
                (all_calls(&fewest).low, all_calls(&most).high)
            }
        };
        // The time of an execution limits its calls.
        let limit = (figures.mean_ms() * NS_PER_MS / MIN_CALL_NS).max(1.0);
        // Each returned row is a call of the root.
        let least = rows.unwrap_or(0.0).clamp(1.0, limit);
        // So many calls of so little time are not plausible, and such a guess says nothing about the lower bound.
        let is_plausible = !is_guess || likely.estimate <= limit / IMPLAUSIBLE;
        let low = if is_plausible { (fewest.min(likely.low) / error).max(least) } else { least };
        let guessed = likely.estimate * (most / likely.estimate).max(1.0).powf(GUESS_QUANTILE);
        let high = guessed.max(likely.high * error).clamp(low, limit.max(low));
        NodeCalls { calls: Range { low, estimate: likely.estimate.clamp(low, high), high }, plan }
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

/// Returns the calls of all nodes by all processes.
fn all_calls(plan: &Plan) -> Range {
    plan.nodes.iter().fold(Range::default(), |sum, node| sum + node.calls.times(node.processes))
}

/// Returns the factor by which the number of calls can differ from the estimate, beyond the guesses. `tests/advise/bench
/// calls` measures it.
fn error_factor(plan: &Plan, joins: u32, is_guess: bool) -> f64 {
    let has_rows = plan.nodes.iter().any(|node| node.node.rows.is_some_and(|rows| rows.per_loop > 1.0));
    match (is_guess, joins) {
        (true, _) => 2.5,
        // Lookups of single rows have no error.
        (false, 0) if !has_rows => 1.0,
        (false, 0) => 1.25,
        (false, _) => 2.5,
    }
}
