//! One node of a flattened plan, and its position in the tree.

use super::explained::Node;
use super::steps;
use crate::report::Range;

/// A plan node with the figures that the correction needs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// the node as EXPLAIN printed it; its `plans` are moved into the flat list
    pub node: Node,
    /// number of child nodes that are not subplans
    pub inputs: usize,
    /// child indexes from the root down, like `0.1`
    pub path: String,
    /// index of the node above in the printed tree
    pub parent: Option<usize>,
    /// index after the last node below this one
    pub end: usize,
    /// index of the node whose calls run this node; for subplans, not always the node above
    pub caller: Option<usize>,
    /// only the caller can have run this node; other nodes can have run a part of some subplans
    pub has_one_caller: bool,
    /// number of processes that ran the node in parallel, on average
    pub processes: f64,
    /// calls per process, on average
    pub calls: Range,
    /// time that EXPLAIN ANALYZE reported, per process on average; `None` without timing
    pub reported_ms: Option<f64>,
    /// maximum rounding error of `reported_ms`, over all loops
    pub rounding_ms: f64,
}

impl PlanNode {
    /// Returns whether the node was executed. A node without a loop count is assumed to be executed.
    pub fn was_executed(&self) -> bool {
        self.node.loops.is_none_or(|loops| loops > 0.0)
    }

    /// Returns the reported time in ms, or 0 if the plan was not timed.
    pub fn reported_or_zero_ms(&self) -> f64 {
        self.reported_ms.unwrap_or(0.0)
    }
}

/// Returns the processes without the leader, at least 1.
pub fn workers(processes: f64) -> f64 {
    (processes - 1.0).max(1.0)
}

/// Returns whether the node is on the inner side of a nested loop.
pub fn is_inner(nodes: &[PlanNode], index: usize) -> bool {
    let node = &nodes[index];
    let Some(parent) = node.parent.filter(|_| node.node.subplan.is_none()) else { return false };
    let is_input = |other: &PlanNode| other.parent == Some(parent) && other.node.subplan.is_none();
    nodes[parent].node.kind == "Nested Loop" && nodes[parent + 1..index].iter().any(is_input)
}

/// Returns, for each node, the nodes that it calls directly.
pub fn callees(nodes: &[PlanNode]) -> Vec<Vec<usize>> {
    let mut callees = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        if let Some(caller) = node.caller {
            callees[caller].push(index);
        }
    }
    callees
}

/// Returns the nodes in an order in which each node comes after all nodes that it calls. Nodes that call each other in
/// a circle are missing.
pub fn callees_first(nodes: &[PlanNode]) -> Vec<usize> {
    let mut callees = vec![0; nodes.len()];
    nodes.iter().filter_map(|node| node.caller).for_each(|caller| callees[caller] += 1);
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&node| callees[node] == 0).collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        if let Some(caller) = nodes[node].caller {
            callees[caller] -= 1;
            if callees[caller] == 0 {
                order.push(caller);
            }
        }
    }
    steps::count(done);
    order
}
