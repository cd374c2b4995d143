//! How what EXPLAIN ANALYZE adds to a plan is shared among its nodes.

use super::self_time::{own_offs, rank};
use crate::report::{ExplainedNode, Range};
use crate::server::explain::plan::calls::{Flat, spread_of};
use crate::statistics::{median, together};

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
    /// how far what all of them take may be off, because the runs that tell it are few
    pub calls_off: f64,
    /// what the whole takes more for other reasons
    pub rest: f64,
    /// what of `call` is the clock
    pub clock: f64,
}

impl Charge {
    /// What the whole takes without all of that.
    fn plain(&self, all_calls: f64) -> f64 {
        (self.reported - self.call * all_calls - self.rest).max(0.0)
    }

    /// What a part of the whole takes without it.
    pub fn corrected(&self, reported: f64, calls: f64, all_calls: f64) -> f64 {
        let without_calls = self.plain(all_calls) + self.rest;
        let slower = if without_calls > 0.0 { self.rest / without_calls } else { 0.0 };
        (reported - self.call * calls).clamp(0.0, reported.max(0.0)) * (1.0 - slower)
    }

    /// The share of the whole that is.
    pub fn part(&self, corrected: f64, all_calls: f64) -> f64 {
        let plain = self.plain(all_calls);
        if plain > 0.0 { (corrected / plain).min(1.0) } else { 1.0 }
    }

    /// How far it may be off because what calls take is known of all of them together.
    pub fn shared_off(&self, part: f64, calls: f64, all_calls: f64) -> f64 {
        let of_calls = (calls / all_calls.max(1.0)).min(1.0);
        // The bounds of a read's cost are those of any node's calls.
        let differ = if self.call_off > 0.0 { 0.0 } else { hidden(self.call) };
        together([
            differ * calls * (1.0 - of_calls),
            // The whole keeps its time: what its calls take less, the rest of it takes more.
            self.calls_off * (of_calls - part).abs(),
            // All of it may have fallen here, or none.
            self.rest * (part * (1.0 - part)).sqrt(),
        ])
    }

    /// How far half of a call may be from what falls into the node's own time.
    pub fn half_off(&self) -> f64 {
        hidden(self.call) / 2.0
    }
}

/// By how much one node's calls may differ from another's. A processor with other work to wait for may hide half of
/// what timing takes, but no more than some dozen instructions' time of it. What a slow clock takes beyond that is
/// alike for all nodes, but for what the system call in it leaves behind in the caches.
fn hidden(call: f64) -> f64 {
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
    let own = own_offs(plans, all_calls, charge);
    first
        .iter()
        .zip(own)
        .enumerate()
        .map(|(at, (node, own))| {
            let each: Vec<f64> = plans.iter().filter_map(|plan| plan[at].reported_ms).collect();
            // A clock that runs backwards makes it negative.
            let reported = median(&each).max(0.0);
            let calls = node.calls.estimate;
            let charged = node.calls_below.estimate + calls / 2.0;
            let estimate = charge.corrected(reported, charged, all_calls);
            let part = charge.part(estimate, all_calls);
            // The whole is as sure as the plain runs: what remains is how the runs share it. And what is off
            // about the root is off about a part of it by as much less.
            let runs_off = spread_of(plans, |plan| plan[at].reported_ms).hypot(charge.off * part);
            let chance = [runs_off, charge.half_off() * calls, charge.shared_off(part, charged, all_calls)];
            // Bounds add up, where what varies by chance does not.
            let off = together(chance) + charge.call_off * (node.calls_below.estimate + calls) + node.rounded_ms;
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
                reported_self_off_ms: own.reported,
                corrected_self_off_ms: own.corrected,
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
            let Range { low: least, high: most, .. } = nodes[above].corrected_ms;
            let Range { low, estimate, high } = nodes[at].corrected_ms;
            let low = if estimate > most { low.min(least) } else { low };
            nodes[at].corrected_ms = Range { low, estimate: estimate.min(most), high: high.min(most) };
        }
    }
    rank(&mut nodes, plan);
    nodes
}
