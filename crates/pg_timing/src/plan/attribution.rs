//! Shares the overhead of EXPLAIN ANALYZE among the nodes of a plan.
//!
//! Only the overhead of the whole plan is known, and each call has the same part of it: the cost of a timed call is not fixed,
//! because the processor may overlap it with other work. We subtract from a node's time the overhead of all calls below it, and
//! half of the overhead of its own calls. The other half falls into the time of the node that called it. The intervals include
//! the errors of these assumptions.
//!
//! Conservation: no node takes longer than the statement or than its only caller, and self times add up to at most the
//! statement's time.

use super::unusable::with_tolerance;
use super::{Plan, PlanNode, callees, callers_first, share_margin_ms};
use crate::report::{ExplainReport, ExplainedNode, MS_PER_NS, OVERLAP_NS, Range};
use crate::statistics::{median, ranks, root_sum_squares};

/// The overhead of a plan, to be shared among its calls. Times are in ms.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// execution time of the plan, as reported
    pub reported: f64,
    /// reported time without overhead
    pub corrected: Range,
    /// calls of the plan, per process
    pub calls: f64,
    /// time of the clock reads
    pub clock: f64,
    /// by how much the timed run took longer than the calls can explain; a part of the corrected time
    pub unexplained: f64,
}

/// The overhead of a node's call differs by this part from that of the average call: the 36 kinds of nodes that were measured
/// differ by 12% (two standard deviations), and the nodes of one kind by 20% (`bench/recordings/calls`).
const NODE_ERROR: f64 = 0.23;
/// This part of a call's overhead may fall to the other side of the node's time: two clock reads of equal length split it in
/// half.
const HALF_ERROR: f64 = 0.1;

/// A part of a plan: a node with or without the nodes that it runs.
struct Part {
    /// its time in the median run
    reported: f64,
    /// calls whose overhead falls into it
    calls_inside: f64,
    /// calls of which one half falls into it
    boundary_calls: f64,
    /// run-to-run variation
    variation: f64,
    /// maximum rounding error
    rounding: f64,
}

/// The time of a part without overhead.
struct Corrected {
    estimate: f64,
    /// errors below and above the estimate
    margins: [f64; 2],
    /// error of this part alone; errors that scale all parts equally are not included
    own_margin: f64,
}

impl Overhead {
    /// Returns a report with these figures.
    pub fn report(&self) -> ExplainReport {
        let share = |ms: f64| if self.reported > 0.0 { ms / self.reported } else { 0.0 };
        let (reported, Range { low, estimate, high }) = (self.reported, self.corrected);
        let factor = Range { low: reported / high, estimate: reported / estimate, high: reported / low };
        ExplainReport {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            reported_ms: reported,
            corrected_ms: self.corrected,
            overhead_factor: (low > 0.0).then_some(factor),
            overhead_share: share((reported - estimate).max(0.0)),
            clock_share: share(self.clock),
            unexplained_share: share(self.unexplained),
            ..ExplainReport::default()
        }
    }

    /// Returns the time of a part without overhead.
    fn without(&self, part: &Part) -> Corrected {
        let (baseline, calls) = (self.corrected.estimate, self.calls.max(1.0));
        let per_call = (self.reported - baseline).max(0.0) / calls;
        let estimate = (part.reported - per_call * part.calls_inside).clamp(0.0, part.reported.max(0.0));
        let share = if baseline > 0.0 { (estimate / baseline).min(1.0) } else { 1.0 };
        let share_of_calls = (part.calls_inside / calls).min(1.0);
        let node_ms = (NODE_ERROR * per_call).min(max_overlap(per_call));
        let half_ms = (HALF_ERROR * per_call).min(max_overlap(per_call) / 2.0);
        let own = root_sum_squares([
            part.variation,
            half_ms * part.boundary_calls,
            // The overhead of all calls together is known.
            node_ms * part.calls_inside * (1.0 - share_of_calls),
        ]);
        // We do not know whether the error of the total comes from the calls or from slower work. In the first case it follows the
        // part's calls, in the second case its time. The larger one is used.
        let of_whole = share_of_calls.max(share);
        let margins = [baseline - self.corrected.low, self.corrected.high - baseline]
            .map(|whole| own.hypot(whole * of_whole) + part.rounding);
        // Less overhead of the calls means more time elsewhere.
        let shift = self.corrected.margin() * (share_of_calls - share).abs();
        Corrected { estimate, margins, own_margin: own.hypot(shift) + part.rounding }
    }
}

/// Returns how much of the overhead per call the processor can overlap with other work, in ms.
///
/// That is at most about 50 ns. Beyond that, the cost of a slow clock differs by up to 5% between nodes, because its system
/// call evicts cache lines.
fn max_overlap(per_call: f64) -> f64 {
    const CACHE_EVICTION: f64 = 0.05;
    OVERLAP_NS * MS_PER_NS + CACHE_EVICTION * per_call
}

/// Returns every node of a plan, with its corrected time, in the order of the tree. `runs` are runs of the same plan.
pub fn attribute(runs: &[Plan], overhead: &Overhead) -> Vec<ExplainedNode> {
    let Some(first) = runs.first() else { return Vec::new() };
    let callees = callees(&first.nodes);
    let below = calls_below(&first.nodes, &callees);
    let mut nodes: Vec<ExplainedNode> =
        (0..first.nodes.len()).map(|index| node(runs, index, &callees[index], below[index], overhead)).collect();
    limit(&mut nodes, &first.nodes, overhead);
    set_self_times(&mut nodes, runs, &callees, overhead);
    nodes
}

/// Returns the calls of all nodes that run within the calls of each node, per process.
fn calls_below(nodes: &[PlanNode], callees: &[Vec<(usize, f64)>]) -> Vec<f64> {
    let mut below = vec![0.0; nodes.len()];
    for index in callers_first(nodes).into_iter().rev() {
        let called = callees[index].iter().map(|&(callee, part)| part * (below[callee] + nodes[callee].calls.estimate));
        below[index] = called.sum();
    }
    below
}

/// Returns a node with its corrected time.
fn node(runs: &[Plan], index: usize, callees: &[(usize, f64)], calls_below: f64, overhead: &Overhead) -> ExplainedNode {
    let node = &runs[0].nodes[index];
    let per_run: Vec<f64> = runs.iter().filter_map(|run| run.nodes[index].reported_ms).collect();
    let part = Part {
        // A clock that runs backwards can make the reported time negative.
        reported: median(&per_run).max(0.0),
        calls_inside: calls_below + node.calls.estimate / 2.0,
        boundary_calls: node.calls.estimate,
        variation: share_margin_ms(runs, |nodes| nodes[index].reported_ms),
        rounding: node.rounding_ms,
    };
    let Corrected { estimate, margins: [below, above], .. } = overhead.without(&part);
    // A node takes no longer without timing than with timing, within the errors of the runs.
    let most = (part.reported + part.variation + part.rounding).max(estimate);
    let clock_ms = overhead.clock / overhead.calls.max(1.0) * part.calls_inside;
    let self_ms = |nodes: &[PlanNode]| self_ms(nodes, index, callees);
    ExplainedNode {
        path: node.path.clone(),
        kind: node.printed.kind.clone(),
        title: node.printed.title(),
        calls: node.all_calls.estimate,
        processes: node.processes.round() as u32,
        loops: node.printed.loops.unwrap_or(0.0) / node.processes,
        reported_ms: part.reported,
        rounded_ms: node.rounding_ms,
        corrected_ms: Range { low: (estimate - below).max(0.0), estimate, high: (estimate + above).min(most) },
        clock_share: if part.reported > 0.0 { (clock_ms / part.reported).min(1.0) } else { 0.0 },
        reported_self_off_ms: share_margin_ms(runs, self_ms) + self_rounding(&runs[0].nodes, index, callees),
        ..Default::default()
    }
}

/// Returns a node's time without the nodes that it runs, as far as the times of one run show it.
fn self_ms(nodes: &[PlanNode], index: usize, callees: &[(usize, f64)]) -> Option<f64> {
    let of_callees = callees.iter().map(|&(callee, part)| Some(part * nodes[callee].reported_ms?));
    Some(nodes[index].reported_ms? - of_callees.sum::<Option<f64>>()?)
}

fn self_rounding(nodes: &[PlanNode], index: usize, callees: &[(usize, f64)]) -> f64 {
    nodes[index].rounding_ms + callees.iter().map(|&(callee, _)| nodes[callee].rounding_ms).sum::<f64>()
}

/// Limits every corrected time to that of the statement, and to that of the node's only caller. Other nodes may have run a part of
/// some subplans, and nodes of extensions may run their inputs in parallel.
fn limit(nodes: &mut [ExplainedNode], plan: &[PlanNode], overhead: &Overhead) {
    for index in callers_first(plan) {
        nodes[index].corrected_ms = limited(nodes[index].corrected_ms, overhead.corrected);
        if index == 0 {
            // The root takes almost as long: only the start and the end of the execution do not belong to any node.
            let least = overhead.corrected.low - (overhead.reported - nodes[0].reported_ms).max(0.0);
            let Range { low, estimate, .. } = nodes[0].corrected_ms;
            nodes[0].corrected_ms.low = low.max(least.min(estimate));
        }
        if let Some(caller) = plan[index].callers.only().filter(|_| plan[index].rows_are_calls) {
            nodes[index].corrected_ms = limited(nodes[index].corrected_ms, nodes[caller].corrected_ms);
        }
    }
}

/// Returns a time that is at most another one. Its bounds stay in order.
fn limited(Range { low, estimate, high }: Range, most: Range) -> Range {
    // Either estimate can be wrong, so the interval then begins where the other one does.
    let low = if estimate > most.estimate { low.min(most.low) } else { low };
    Range { low, estimate: estimate.min(most.estimate), high: high.min(most.high) }
}

/// Sets the self times, their intervals, and the ranks of all nodes. Rank 1 has the largest self time.
fn set_self_times(nodes: &mut [ExplainedNode], runs: &[Plan], callees: &[Vec<(usize, f64)>], overhead: &Overhead) {
    let plan = &runs[0].nodes;
    let times = |ms: fn(&ExplainedNode) -> f64| nodes.iter().map(ms).collect::<Vec<f64>>();
    let reported = SelfTimes::of(plan, callees, &times(|node| node.reported_ms), overhead.reported);
    let corrected =
        SelfTimes::of(plan, callees, &times(|node| node.corrected_ms.estimate), overhead.corrected.estimate);
    for (index, node) in nodes.iter_mut().enumerate() {
        let estimate = corrected.estimates[index];
        // Half of the overhead of the node's own calls falls into it, and half of that of the calls that it makes.
        let boundary_calls = plan[index].calls.estimate
            + callees[index].iter().map(|&(callee, _)| plan[callee].calls.estimate).sum::<f64>();
        let rounding = self_rounding(plan, index, &callees[index]);
        let part = Part {
            reported: reported.estimates[index],
            calls_inside: boundary_calls / 2.0,
            boundary_calls,
            variation: node.reported_self_off_ms - rounding,
            rounding,
        };
        let Corrected { margins: [below, above], own_margin, .. } = overhead.without(&part);
        let Range { low, high, .. } = corrected.bounds[index];
        // The bounds are the error of a time that the plan does not show.
        node.reported_self_ms = reported.estimates[index];
        node.reported_self_off_ms += reported.bounds[index].margin();
        node.corrected_self_ms = estimate;
        node.corrected_self_off_ms = own_margin + corrected.bounds[index].margin();
        let most = node.corrected_ms.high.min(node.reported_self_ms + node.reported_self_off_ms).max(estimate);
        node.self_ms = if callees[index].is_empty() && reported.is_determined[index] {
            Range { estimate, low: node.corrected_ms.low.min(estimate), ..node.corrected_ms }
        } else {
            // The self time is a part of the node's time, and timing makes it no shorter.
            Range { low: (low - below).max(0.0), estimate, high: (high + above).min(most) }
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
    /// same part of the time that there is, and their own self times are not determined. If the excess is within the rounding
    /// errors, it is subtracted from the rounded times, and the self times stay determined.
    fn of(plan: &[PlanNode], callees: &[Vec<(usize, f64)>], times: &[f64], whole_ms: f64) -> SelfTimes {
        let called_ms: Vec<f64> =
            callees.iter().map(|callees| callees.iter().map(|&(callee, part)| part * times[callee]).sum()).collect();
        let (mut granted, mut factors, mut rest_ms) = (vec![0.0; plan.len()], vec![1.0; plan.len()], whole_ms);
        // The part of each rounding error of its callees that a node subtracts.
        let (mut roundings, error) = (vec![0.0; plan.len()], |index: usize| plan[index].rounding_ms.min(times[index]));
        let mut divided = SelfTimes {
            estimates: vec![0.0; plan.len()],
            bounds: vec![Range::default(); plan.len()],
            is_determined: vec![true; plan.len()],
        };
        for index in callers_first(plan) {
            let parts = &plan[index].callers.parts;
            let mut ms: f64 = parts
                .iter()
                .map(|&(caller, part)| part * (factors[caller] * times[index] - roundings[caller] * error(index)))
                .sum();
            // The root, and data-modifying CTEs that no node reads to the end.
            if parts.is_empty() {
                ms = times[index].min(rest_ms);
                rest_ms -= ms;
            }
            granted[index] = ms;
            let rounding: f64 = callees[index].iter().map(|&(callee, part)| part * error(callee)).sum();
            if called_ms[index] > ms + rounding {
                factors[index] = ms / called_ms[index];
            } else if called_ms[index] > ms {
                roundings[index] = (called_ms[index] - ms) / rounding;
            }
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

#[cfg(test)]
mod tests;
