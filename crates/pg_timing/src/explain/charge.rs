//! How what EXPLAIN ANALYZE adds to a plan is shared among its nodes.

use super::Flat;
use super::by_itself::{by_itself, rank};
use super::figures::median;
use super::flat::spread_of;
use crate::report::{ExplainedNode, Range};

/// What EXPLAIN ANALYZE adds to a plan, and how it is shared among its calls. In ms.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// of the whole plan
    pub reported: f64,
    /// how far the whole may be off, for reasons that its calls have no part in
    pub off: f64,
    /// what each call takes more for being timed
    pub call: f64,
    /// how far that may be off, for any node
    pub call_off: f64,
    /// what the whole takes more for other reasons
    pub rest: f64,
    /// and how far one node's calls may differ in it from another's
    pub calls_differ: f64,
    /// what of `call` is the clock
    pub clock: f64,
}

impl Charge {
    /// What is left without all of that.
    pub fn plain(&self, all_calls: f64) -> f64 {
        (self.reported - self.call * all_calls - self.rest).max(0.0)
    }

    /// How far half of a call may be from what falls into the node's own time.
    pub fn half_off(&self) -> f64 {
        calls_differ(self.call) / 2.0
    }
}

/// A processor with other work to wait for may hide half of what timing takes, but no more than some dozen
/// instructions' time of it. What a slow clock takes beyond that is alike for all nodes, but for what the
/// system call in it leaves behind in the caches.
pub fn calls_differ(call: f64) -> f64 {
    const HIDDEN: f64 = 50e-6;
    const LEFT_BEHIND: f64 = 0.05;
    (call / 2.0).min(HIDDEN + LEFT_BEHIND * call)
}

/// Every node of a plan that ran once.
pub fn nodes(plan: Vec<Flat>, all_calls: f64, charge: &Charge) -> Vec<ExplainedNode> {
    let plans = [plan];
    finished(charged(&plans, all_calls, charge), &plans[0])
}

/// Every node with its corrected time; in the order of the tree. `plans` are runs of the same plan.
pub fn charged(plans: &[Vec<Flat>], all_calls: f64, charge: &Charge) -> Vec<ExplainedNode> {
    let Some(first) = plans.first() else { return Vec::new() };
    let plain = charge.plain(all_calls);
    let without_calls = plain + charge.rest;
    let slower = if without_calls > 0.0 { charge.rest / without_calls } else { 0.0 };
    let own = by_itself(plans, all_calls, charge);
    first
        .iter()
        .zip(own)
        .enumerate()
        .map(|(at, (node, own))| {
            let each: Vec<f64> = plans.iter().filter_map(|plan| plan[at].reported_ms).collect();
            let reported = median(&each);
            let calls = node.calls.estimate;
            let charged = node.calls_below.estimate + calls / 2.0;
            let others = (1.0 - charged / all_calls.max(1.0)).max(0.0);
            let estimate = (reported - charge.call * charged).clamp(0.0, reported) * (1.0 - slower);
            let part = if plain > 0.0 { (estimate / plain).min(1.0) } else { 1.0 };
            // The whole is as sure as the plain runs: what remains is how the runs share it. And what is off
            // about the root is off about a part of it by as much less.
            let runs_off = (spread_of(plans, |plan| plan[at].reported_ms) * charge.reported).hypot(charge.off * part);
            let off = [
                runs_off,
                charge.half_off() * calls,
                charge.calls_differ * charged * others,
                // All of it may have fallen to this node, or none.
                charge.rest * (part * (1.0 - part)).sqrt(),
            ];
            // Bounds add up, where what varies by chance does not.
            let off = off.iter().map(|off| off * off).sum::<f64>().sqrt()
                + charge.call_off * (node.calls_below.estimate + calls)
                + node.rounded_ms;
            // It takes no longer without being timed than with it, as far as the runs tell that.
            let most = (reported + runs_off + node.rounded_ms).max(estimate);
            ExplainedNode {
                path: node.path.clone(),
                kind: node.node.kind.clone(),
                title: node.node.title(),
                depth: node.depth,
                calls: calls * node.processes,
                processes: node.processes.round() as u32,
                reported_ms: reported,
                rounded_ms: node.rounded_ms,
                corrected_ms: Range { low: (estimate - off).max(0.0), estimate, high: (estimate + off).min(most) },
                clock_share: if reported > 0.0 { (charge.clock * charged / reported).min(1.0) } else { 0.0 },
                reported_self_off_ms: own.reported_off,
                corrected_self_off_ms: own.corrected_off,
                ..Default::default()
            }
        })
        .collect()
}

/// With what follows from all of them together.
pub fn finished(mut nodes: Vec<ExplainedNode>, plan: &[Flat]) -> Vec<ExplainedNode> {
    for (at, node) in plan.iter().enumerate() {
        // A subplan may run in more places than the one it is shown in.
        if let (Some(above), None) = (node.within, &node.node.subplan) {
            let most = nodes[above].corrected_ms.high;
            let Range { low, estimate, high } = nodes[at].corrected_ms;
            nodes[at].corrected_ms = Range { low: low.min(most), estimate: estimate.min(most), high: high.min(most) };
        }
    }
    rank(&mut nodes, plan);
    nodes
}
