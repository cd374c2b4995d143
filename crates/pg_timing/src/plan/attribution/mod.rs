//! Shares the overhead of EXPLAIN ANALYZE among the nodes of a plan.
//!
//! The cost of a timed call is not fixed, because the processor may overlap it with other work. So `live` and
//! `captured` derive the overhead of the whole plan, and each call has the same part of it. We subtract from a node's time
//! the overhead of all calls below it, and half of the overhead of its own calls. The other half falls into the time of the
//! node that called it. The node's interval includes the error of this assumption. No node takes longer than the statement,
//! and none takes longer than its only caller. Self times add up to at most the statement's time.

mod charge;
mod limits;
mod sampled;
mod self_time;
#[cfg(test)]
mod tests;

pub use charge::Charge;

use super::node::{callees, callers_first};
use super::{Plan, share_margin_ms};
use crate::report::{ExplainedNode, Range};
use crate::statistics::{median, root_sum_squares};

/// Returns every node of a plan, with its corrected time. `runs` are runs of the same plan.
///
/// `sampled` are runs that pg_fast_timing timed by sampling, with the statement's baseline time.
pub fn attribute(
    runs: &[Plan],
    total_calls: f64,
    charge: &Charge,
    sampled: Option<(&[Plan], Range)>,
) -> Vec<ExplainedNode> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mut nodes = corrected(runs, total_calls, charge);
    if let Some((sampled_runs, baseline)) = sampled {
        sampled::refine(&mut nodes, sampled_runs, baseline);
    }
    limits::limit_to_statement(&mut nodes, charge);
    limits::limit_to_callers(&mut nodes, &first.nodes);
    self_time::set_self_times(&mut nodes, &first.nodes, charge, |self_ms| {
        charge.baseline_margin * charge.share(self_ms, total_calls)
    });
    nodes
}

/// Returns the calls of all nodes that run within the calls of each node, per process.
fn calls_below(plan: &Plan) -> Vec<f64> {
    let callees = callees(&plan.nodes);
    let mut below = vec![0.0; plan.nodes.len()];
    for index in callers_first(&plan.nodes).into_iter().rev() {
        let called =
            callees[index].iter().map(|&(callee, part)| part * (below[callee] + plan.nodes[callee].calls.estimate));
        below[index] = called.sum();
    }
    below
}

/// Returns every node with its corrected time, in the order of the tree.
fn corrected(runs: &[Plan], total_calls: f64, charge: &Charge) -> Vec<ExplainedNode> {
    let margins = self_time::margins(runs, total_calls, charge);
    let below = calls_below(&runs[0]);
    runs[0]
        .nodes
        .iter()
        .zip(margins)
        .enumerate()
        .map(|(index, (node, self_margins))| {
            let per_run: Vec<f64> = runs.iter().filter_map(|run| run.nodes[index].reported_ms).collect();
            // A clock that runs backwards can make the reported time negative.
            let reported = median(&per_run).max(0.0);
            let calls = node.calls.estimate;
            let charged_calls = below[index] + calls / 2.0;
            let estimate = charge.corrected(reported, charged_calls, total_calls);
            let share = charge.share(estimate, total_calls);
            // The root's margin is the baseline's margin. Any other node has its share of that margin, combined with
            // the variation of its share between runs.
            let runs_differ = share_margin_ms(runs, |nodes| nodes[index].reported_ms);
            let run_margin = runs_differ.hypot(charge.baseline_margin * share);
            let independent = [
                run_margin,
                charge.half_call_margin() * calls,
                charge.distribution_margin(share, charged_calls, total_calls),
            ];
            // Independent errors are combined in quadrature. The rounding error is a bound, so it is added.
            let margin = root_sum_squares(independent) + node.rounding_ms;
            // A node takes no longer without timing than with timing, within the errors of the runs.
            let most = (reported + runs_differ + node.rounding_ms).max(estimate);
            ExplainedNode {
                path: node.path.clone(),
                kind: node.node.kind.clone(),
                title: node.node.title(),
                calls: node.all_calls.estimate,
                processes: node.processes.round() as u32,
                loops: node.node.loops.unwrap_or(0.0) / node.processes,
                reported_ms: reported,
                rounded_ms: node.rounding_ms,
                corrected_ms: Range {
                    low: (estimate - margin).max(0.0),
                    estimate,
                    high: (estimate + margin).min(most),
                },
                clock_share: match reported > 0.0 {
                    true => (charge.clock_per_call * charged_calls / reported).min(1.0),
                    false => 0.0,
                },
                reported_self_off_ms: self_margins.reported,
                corrected_self_off_ms: self_margins.corrected,
                ..Default::default()
            }
        })
        .collect()
}
