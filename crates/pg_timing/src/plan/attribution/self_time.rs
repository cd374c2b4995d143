//! Self time of plan nodes: a node's time without the nodes that it runs, and the node's rank by it.

use super::charge::Charge;
use crate::plan::node::{PlanNode, callees, callers_first};
use crate::plan::validate::with_tolerance;
use crate::plan::{Plan, share_margin_ms};
use crate::report::{ExplainedNode, Range};
use crate::statistics::{median, ranks, root_sum_squares};

/// Margins of a node's self time in ms. They do not include the error of the machine's speed: it affects all nodes
/// alike, so it changes no ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfTimeMargins {
    pub reported: f64,
    pub corrected: f64,
}

/// Returns the margins of every node. `plans` are runs of the same plan.
pub fn margins(plans: &[Plan], total_calls: f64, charge: &Charge) -> Vec<SelfTimeMargins> {
    let Some(first) = plans.first().map(|plan| &plan.nodes) else { return Vec::new() };
    let calls = |index: usize| first[index].calls.estimate;
    callees(first)
        .iter()
        .enumerate()
        .map(|(index, children)| {
            let self_ms = |nodes: &[PlanNode]| {
                let of_children = children.iter().map(|&(child, part)| Some(part * nodes[child].reported_ms?));
                Some(nodes[index].reported_ms? - of_children.sum::<Option<f64>>()?)
            };
            let per_run: Vec<f64> = plans.iter().filter_map(|plan| self_ms(&plan.nodes)).collect();
            let run_margin = share_margin_ms(plans, self_ms);
            let node_and_children = || children.iter().map(|(child, _)| *child).chain([index]);
            let rounding: f64 = node_and_children().map(|node| first[node].rounding_ms).sum();
            // The self time contains half of the overhead of the node's own calls, and half of that of its children's
            // calls.
            let half_calls = node_and_children().map(calls).sum::<f64>() / 2.0;
            let corrected = charge.corrected(median(&per_run), half_calls, total_calls);
            let share = charge.share(corrected, total_calls);
            let per_node = node_and_children().map(|node| charge.half_call_margin() * calls(node));
            let independent = per_node.chain([run_margin, charge.distribution_margin(share, half_calls, total_calls)]);
            SelfTimeMargins { reported: run_margin + rounding, corrected: root_sum_squares(independent) + rounding }
        })
        .collect()
}

/// Sets the self times, their intervals, and the ranks of all nodes. Rank 1 has the largest self time. `speed_margin` returns
/// the error that the machine's speed adds to a time.
pub fn set_self_times(
    nodes: &mut [ExplainedNode],
    plan: &[PlanNode],
    charge: &Charge,
    speed_margin: impl Fn(f64) -> f64,
) {
    let times = |ms: fn(&ExplainedNode) -> f64| nodes.iter().map(ms).collect::<Vec<f64>>();
    let reported = SelfTimes::of(plan, &times(|node| node.reported_ms), charge.reported);
    let corrected = SelfTimes::of(plan, &times(|node| node.corrected_ms.estimate), charge.whole.estimate);
    let children = callees(plan);
    for (index, node) in nodes.iter_mut().enumerate() {
        node.reported_self_ms = reported.estimates[index];
        node.corrected_self_ms = corrected.estimates[index];
        let estimate = node.corrected_self_ms;
        let margin = node.corrected_self_off_ms.hypot(speed_margin(estimate));
        let Range { low, high, .. } = corrected.bounds[index];
        // The bounds are the error of a time that the plan does not show.
        node.reported_self_off_ms += reported.bounds[index].half_width();
        node.corrected_self_off_ms += corrected.bounds[index].half_width();
        let most = node.corrected_ms.high.min(reported.estimates[index] + node.reported_self_off_ms).max(estimate);
        node.self_ms = match children[index].is_empty() && reported.is_determined[index] {
            true => Range { estimate, low: node.corrected_ms.low.min(estimate), ..node.corrected_ms },
            // The self time is a part of the node's time, and timing makes it no shorter.
            false => Range { low: (low - margin).max(0.0), estimate, high: (high + margin).min(most) },
        };
    }
    let known: Vec<usize> = (0..nodes.len()).filter(|&node| reported.is_determined[node]).collect();
    let ranks_by = |estimates: &[f64]| ranks(&known.iter().map(|&node| estimates[node]).collect::<Vec<_>>());
    let both = ranks_by(&reported.estimates).into_iter().zip(ranks_by(&corrected.estimates));
    for (&node, (rank, corrected_rank)) in known.iter().zip(both) {
        (nodes[node].rank, nodes[node].corrected_rank) = (Some(rank), Some(corrected_rank));
    }
}

/// A plan's time, divided among its nodes.
struct SelfTimes {
    /// they add up to at most the time of the statement
    estimates: Vec<f64>,
    /// what the plan shows about each of them
    bounds: Vec<Range>,
    /// the plan shows the node's self time, except for the error of each time
    is_determined: Vec<bool>,
}

impl SelfTimes {
    /// Divides the times of all nodes, of a statement that took `whole_ms`.
    ///
    /// If the nodes that a node runs took longer than the node itself, they ran in parallel or elsewhere. Then each gets the
    /// same part of the time that there is, and their own self times are not determined. This applies to small errors of the
    /// times, too, without the last consequence.
    fn of(plan: &[PlanNode], times: &[f64], whole_ms: f64) -> SelfTimes {
        let called_ms: Vec<f64> = callees(plan)
            .iter()
            .map(|callees| callees.iter().map(|&(callee, part)| part * times[callee]).sum())
            .collect();
        let (mut granted, mut factors, mut rest_ms) = (vec![0.0; plan.len()], vec![1.0; plan.len()], whole_ms);
        let mut divided = SelfTimes {
            estimates: vec![0.0; plan.len()],
            bounds: vec![Range::default(); plan.len()],
            is_determined: vec![true; plan.len()],
        };
        for index in callers_first(plan) {
            let parts = &plan[index].callers.parts;
            // The root, and data-modifying CTEs that no node reads to the end.
            let ms = match parts.is_empty() {
                true => times[index].min(rest_ms),
                false => parts.iter().map(|&(caller, part)| part * factors[caller] * times[index]).sum(),
            };
            if parts.is_empty() {
                rest_ms -= ms;
            }
            granted[index] = ms;
            factors[index] = if called_ms[index] > ms { ms / called_ms[index] } else { 1.0 };
            let estimate = (ms - called_ms[index]).max(0.0);
            divided.estimates[index] = estimate;
            divided.bounds[index] = Range::exactly(estimate);
            if times[index] > with_tolerance(ms, plan[index].rounding_ms) {
                divided.is_determined[index] = false;
                divided.bounds[index] =
                    Range { low: 0.0, estimate, high: (times[index] - called_ms[index]).max(estimate) };
            }
        }
        for (index, node) in plan.iter().enumerate().filter(|(_, node)| node.callers.are_several()) {
            divided.share(&node.callers.parts, granted[index]);
        }
        divided
    }

    /// Widens the bounds of nodes that share a subplan of this time. Each may have run all of it or nothing, as far as the
    /// others have time for it.
    fn share(&mut self, readers: &[(usize, f64)], subplan_ms: f64) {
        let own_ms = |times: &[f64], (reader, part): (usize, f64)| times[reader] + part * subplan_ms;
        let all_ms: f64 = readers.iter().map(|&reader| own_ms(&self.estimates, reader)).sum();
        for &(reader, part) in readers {
            let own = own_ms(&self.estimates, (reader, part));
            let (most, least) = (own.min(subplan_ms), (subplan_ms - (all_ms - own)).clamp(0.0, own));
            let bounds = &mut self.bounds[reader];
            bounds.low = (bounds.low - (most - part * subplan_ms)).max(0.0);
            bounds.high += (part * subplan_ms - least).max(0.0);
            self.is_determined[reader] = false;
        }
    }
}
