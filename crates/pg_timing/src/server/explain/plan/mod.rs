//! A plan that was executed: its nodes with calls and times.

mod calls;
mod explained;
#[cfg(test)]
pub mod generated;
mod name;
mod node;
mod node_json;
pub mod parameters;
pub mod steps;
mod subplans;
#[cfg(test)]
mod tests;
pub mod validate;

pub use explained::{Explained, Node, Rows, Serialization, Trigger};
pub use node::{PlanNode, callees, callees_first, is_inner, workers};
pub use node_json::{MAX_NODES, TOO_MANY_NODES};

use crate::report::Range;
use crate::statistics::{median, median_error};
use std::collections::BTreeMap;

/// An executed plan with its tree flattened into a list. It is built once per run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// in the order of the printed tree, the root first
    pub nodes: Vec<PlanNode>,
    /// structure of the tree without figures, to compare runs
    pub shape: String,
    pub execution_ms: f64,
    pub planning_ms: Option<f64>,
    /// timed calls that belong to no node
    pub other_calls: f64,
    pub uses_jit: bool,
    /// pg_fast_timing timed the plan
    pub uses_fast_timing: bool,
    pub settings: BTreeMap<String, String>,
    pub query: Option<String>,
}

impl Plan {
    /// Returns the plan with EXPLAIN's tree as a flat list. `execution_ms` is its execution time, which the caller has
    /// checked.
    pub fn new(explained: Explained, execution_ms: f64) -> Plan {
        Plan {
            shape: explained.plan.shape(),
            execution_ms,
            planning_ms: explained.planning_ms,
            other_calls: explained.other_calls(),
            uses_jit: explained.jit.is_some(),
            uses_fast_timing: explained.uses_fast_timing(),
            settings: explained.settings,
            query: explained.query,
            nodes: flatten(explained.plan),
        }
    }

    /// Returns the calls of the whole plan by one process.
    pub fn total_calls(&self) -> Range {
        calls::total_calls(&self.nodes, self.other_calls)
    }

    /// Returns how many processes make calls at the same time, on average over all calls.
    pub fn concurrent_processes(&self) -> f64 {
        calls::concurrent_processes(&self.nodes, self.other_calls)
    }

    /// Returns whether `test` holds for any node.
    pub fn any(&self, test: impl Fn(&Node) -> bool) -> bool {
        self.nodes.iter().any(|node| test(&node.node))
    }

    /// Returns the number of rows that the statement produced, if the plan shows it.
    pub fn rows(&self) -> Option<f64> {
        Some(self.nodes.first()?.node.rows?.per_loop)
    }
}

/// Returns the 95% margin of the median of `part_ms`, in ms. `part_ms` returns a part of the root's time.
///
/// The margin comes from the runs' shares of their own root, because the machine's speed cancels in a share.
/// It is 0 for a single run.
pub fn share_margin_ms(plans: &[Plan], part_ms: impl Fn(&[PlanNode]) -> Option<f64>) -> f64 {
    let root_ms = |plan: &Plan| plan.nodes.first()?.reported_ms.filter(|&root| root > 0.0);
    let shares: Vec<f64> = plans.iter().filter_map(|plan| Some(part_ms(&plan.nodes)? / root_ms(plan)?)).collect();
    let roots: Vec<f64> = plans.iter().filter_map(root_ms).collect();
    if shares.len() > 1 { median_error(&shares) * median(&roots) } else { 0.0 }
}

fn flatten(root: Node) -> Vec<PlanNode> {
    let mut nodes = Vec::new();
    // The executor calls the root like any other node.
    add(&mut nodes, root, None, "0".into(), 1.0);
    subplans::assign_callers(&mut nodes);
    nodes
}

fn add(nodes: &mut Vec<PlanNode>, mut node: Node, parent: Option<usize>, path: String, processes: f64) {
    /// EXPLAIN prints the time of one loop in ms with three decimals.
    const ROUNDING_MS: f64 = 0.0005;
    let children = std::mem::take(&mut node.plans);
    let executor = Node::default();
    let calls = calls::calls_over_all_processes(parent.map_or(&executor, |parent| &nodes[parent].node), &node);
    let loops = node.loops.unwrap_or(0.0);
    let index = nodes.len();
    nodes.push(PlanNode {
        inputs: children.iter().filter(|child| child.subplan.is_none()).count(),
        path: path.clone(),
        parent,
        end: index + 1,
        caller: parent,
        has_one_caller: subplans::has_one_caller(&node),
        processes,
        calls: calls::calls_per_process(calls, processes),
        reported_ms: node.total_ms.map(|ms| ms * loops / processes),
        rounding_ms: ROUNDING_MS * loops / processes,
        node,
    });
    for (n, child) in children.into_iter().enumerate() {
        let gather = &nodes[index].node;
        // Only the leader runs the subplans of a Gather.
        let below_gather = gather.is_gather() && child.subplan.is_none();
        let processes = if below_gather { calls::processes_below_gather(&child, gather) } else { processes };
        add(nodes, child, Some(index), format!("{path}.{n}"), processes);
    }
    nodes[index].end = nodes.len();
}
