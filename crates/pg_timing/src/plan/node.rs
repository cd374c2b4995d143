//! One node of a flattened plan, and its position in the tree.

use super::tree::Node;
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
    /// the nodes whose calls run this node; for subplans, not always the node above
    pub callers: Callers,
    /// each row is a call. Nodes of extensions and of PostgreSQL's relatives may run what is below them in another way
    pub rows_are_calls: bool,
    /// number of processes that ran the node in parallel, on average
    pub processes: f64,
    /// calls of all processes
    pub all_calls: Range,
    /// calls per process, on average
    pub calls: Range,
    /// time that EXPLAIN ANALYZE reported, per process on average; `None` without timing
    pub reported_ms: Option<f64>,
    /// maximum rounding error of `reported_ms`, over all loops
    pub rounding_ms: f64,
}

/// The nodes that run a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Callers {
    /// index of each caller, and the estimated part of the node's time that is within its time. The parts add up to 1
    pub parts: Vec<(usize, f64)>,
    /// only these nodes can have run it
    pub are_certain: bool,
}

impl Callers {
    pub fn one(caller: usize, is_certain: bool) -> Callers {
        Callers { parts: vec![(caller, 1.0)], are_certain: is_certain }
    }

    /// Returns the caller, if only one node can have run the node.
    pub fn only(&self) -> Option<usize> {
        self.single().filter(|_| self.are_certain)
    }

    /// Returns the caller, if the plan shows one.
    pub fn single(&self) -> Option<usize> {
        if let [(caller, _)] = self.parts[..] { Some(caller) } else { None }
    }

    /// Returns whether several nodes have run parts of the node, and the plan does not show how large they are.
    pub fn are_several(&self) -> bool {
        self.parts.len() > 1
    }
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

/// Returns, for each node, the nodes that it calls, and which part of their time is within its time.
pub fn callees(nodes: &[PlanNode]) -> Vec<Vec<(usize, f64)>> {
    let mut callees = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        node.callers.parts.iter().for_each(|&(caller, part)| callees[caller].push((index, part)));
    }
    callees
}

/// Returns the nodes in an order in which each node comes after all nodes that call it. Nodes that call each other in a
/// circle are missing.
pub fn callers_first(nodes: &[PlanNode]) -> Vec<usize> {
    let callees = callees(nodes);
    let mut missing: Vec<usize> = nodes.iter().map(|node| node.callers.parts.len()).collect();
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&node| missing[node] == 0).collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for &(callee, _) in &callees[node] {
            missing[callee] -= 1;
            if missing[callee] == 0 {
                order.push(callee);
            }
        }
    }
    super::steps::count(done);
    order
}
