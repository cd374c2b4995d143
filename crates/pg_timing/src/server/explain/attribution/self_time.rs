//! Self time of plan nodes: a node's time without its children, and the node's rank by it.

use super::charge::Charge;
use super::charged_calls::ChargedCalls;
use crate::report::{ExplainedNode, Range};
use crate::server::explain::plan::{Plan, PlanNode, callees, share_margin_ms};
use crate::statistics::{median, ranks, root_sum_squares};

/// Margins of a node's self time in ms. They do not include the error of the machine's speed: it affects all nodes
/// alike, so it changes no ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfTimeMargins {
    pub reported: f64,
    pub corrected: f64,
}

/// Returns the margins of every node. `plans` are runs of the same plan.
pub fn margins(plans: &[Plan], charged: &ChargedCalls, total_calls: f64, charge: &Charge) -> Vec<SelfTimeMargins> {
    let Some(first) = plans.first().map(|plan| &plan.nodes) else { return Vec::new() };
    let calls = |index: usize| charged.own[index];
    callees(first)
        .iter()
        .enumerate()
        .map(|(index, children)| {
            let self_ms = |nodes: &[PlanNode]| {
                let children_ms: Option<f64> = children.iter().map(|&child| nodes[child].reported_ms).sum();
                Some(nodes[index].reported_ms? - children_ms?)
            };
            let per_run: Vec<f64> = plans.iter().filter_map(|plan| self_ms(&plan.nodes)).collect();
            let run_margin = share_margin_ms(plans, self_ms);
            let rounding =
                first[index].rounding_ms + children.iter().map(|&child| first[child].rounding_ms).sum::<f64>();
            // The self time contains half of the overhead of the node's own calls, and half of that of its children's
            // calls.
            let half_calls = (calls(index) + children.iter().map(|&child| calls(child)).sum::<f64>()) / 2.0;
            let corrected = charge.corrected(median(&per_run), half_calls, total_calls);
            let share = charge.share(corrected, total_calls);
            let per_node = children.iter().chain([&index]).flat_map(|&node| {
                let unmeasured = charge.unmeasured_kind_margin() * charged.unmeasured_own[node] / 2.0;
                [charge.half_call_margin() * calls(node), unmeasured]
            });
            let independent = per_node.chain([run_margin, charge.distribution_margin(share, half_calls, total_calls)]);
            SelfTimeMargins { reported: run_margin + rounding, corrected: root_sum_squares(independent) + rounding }
        })
        .collect()
}

/// Sets the self times and ranks of all nodes. Rank 1 has the largest self time.
pub fn set_self_times_and_ranks(nodes: &mut [ExplainedNode], plan: &[PlanNode]) {
    for (index, children) in callees(plan).iter().enumerate() {
        let children_ms =
            |ms: &dyn Fn(&ExplainedNode) -> f64| children.iter().map(|&child| ms(&nodes[child])).sum::<f64>();
        let reported = nodes[index].reported_ms - children_ms(&|node| node.reported_ms);
        let corrected = nodes[index].corrected_ms.estimate - children_ms(&|node| node.corrected_ms.estimate);
        nodes[index].reported_self_ms = reported.max(0.0);
        nodes[index].corrected_self_ms = corrected.max(0.0);
    }
    let ranks_by = |ms: &dyn Fn(&ExplainedNode) -> f64| ranks(&nodes.iter().map(ms).collect::<Vec<_>>());
    let (reported, corrected) = (ranks_by(&|node| node.reported_self_ms), ranks_by(&|node| node.corrected_self_ms));
    for (node, (rank, corrected_rank)) in nodes.iter_mut().zip(reported.into_iter().zip(corrected)) {
        (node.rank, node.corrected_rank) = (rank, corrected_rank);
    }
}

/// Sets the interval of each node's self time. `speed_margin` returns the error that the machine's speed adds to a
/// time.
pub fn set_intervals(nodes: &mut [ExplainedNode], plan: &[PlanNode], speed_margin: impl Fn(f64) -> f64) {
    for (node, children) in nodes.iter_mut().zip(callees(plan)) {
        let estimate = node.corrected_self_ms;
        let margin = node.corrected_self_off_ms.hypot(speed_margin(estimate));
        node.self_ms = match children.is_empty() {
            true => node.corrected_ms,
            // The self time is a part of the node's time, and timing makes it no shorter.
            false => {
                let most = node.corrected_ms.high.min(node.reported_self_ms + node.reported_self_off_ms).max(estimate);
                Range { low: (estimate - margin).max(0.0), estimate, high: (estimate + margin).min(most) }
            }
        };
    }
}
