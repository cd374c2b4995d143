//! What each node takes by itself, and its place among the others by that.

use super::charge::Charge;
use crate::report::ExplainedNode;
use crate::server::explain::plan::calls::{Flat, below, spread_of};
use crate::statistics::{median, together};

/// How far a node's own time may be off for reasons that are its own: a machine that is slower at another time makes
/// all of them longer, and changes no places. In ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnOff {
    pub reported: f64,
    pub corrected: f64,
}

/// Of every node.
pub fn own_offs(plans: &[Vec<Flat>], all_calls: f64, charge: &Charge) -> Vec<OwnOff> {
    let Some(first) = plans.first() else { return Vec::new() };
    let calls = |at: usize| first[at].calls.estimate;
    below(first)
        .iter()
        .enumerate()
        .map(|(at, below)| {
            let own_ms = |plan: &[Flat]| {
                let inside: Option<f64> = below.iter().map(|&at| plan[at].reported_ms).sum();
                Some(plan[at].reported_ms? - inside?)
            };
            let each: Vec<f64> = plans.iter().filter_map(|plan| own_ms(plan)).collect();
            let runs_off = spread_of(plans, own_ms);
            let rounded = first[at].rounded_ms + below.iter().map(|&at| first[at].rounded_ms).sum::<f64>();
            // Its own calls' halves, and the other halves of those that it makes.
            let halves = (calls(at) + below.iter().map(|&at| calls(at)).sum::<f64>()) / 2.0;
            let part = charge.part(charge.corrected(median(&each), halves, all_calls), all_calls);
            let chance = below.iter().chain([&at]).map(|&at| charge.half_off() * calls(at));
            let chance = chance.chain([runs_off, charge.shared_off(part, halves, all_calls)]);
            let bounds = charge.call_off * 2.0 * halves + rounded;
            OwnOff { reported: runs_off + rounded, corrected: together(chance) + bounds }
        })
        .collect()
}

/// What each node takes by itself, and which takes the most.
pub fn rank(nodes: &mut [ExplainedNode], plan: &[Flat]) {
    for (at, below) in below(plan).iter().enumerate() {
        let inside = |of: &dyn Fn(&ExplainedNode) -> f64| below.iter().map(|&at| of(&nodes[at])).sum::<f64>();
        let reported = nodes[at].reported_ms - inside(&|node| node.reported_ms);
        let corrected = nodes[at].corrected_ms.estimate - inside(&|node| node.corrected_ms.estimate);
        nodes[at].reported_self_ms = reported.max(0.0);
        nodes[at].corrected_self_ms = corrected.max(0.0);
    }
    let order = |key: &dyn Fn(&ExplainedNode) -> f64| {
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by(|&a, &b| key(&nodes[b]).total_cmp(&key(&nodes[a])));
        order
    };
    let (reported, corrected) = (order(&|node| node.reported_self_ms), order(&|node| node.corrected_self_ms));
    for (place, &at) in reported.iter().enumerate() {
        nodes[at].rank = place + 1;
    }
    for (place, &at) in corrected.iter().enumerate() {
        nodes[at].corrected_rank = place + 1;
    }
}
