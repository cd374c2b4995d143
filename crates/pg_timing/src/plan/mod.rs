//! Plans that were executed: readers of EXPLAIN's text, JSON, YAML and XML, and the overhead of a captured plan.
//!
//! `find` finds the plans of a text. `text`, `json` and `structured` read one plan into the tree of `tree`. [`Plan`] is
//! the same tree as a flat list with calls and processes. `attribution` shares an overhead among its nodes, and `overhead`
//! estimates the overhead of a captured plan.

pub mod attribution;
pub mod errors;
mod find;
mod frame;
mod json;
mod layout;
mod node;
mod overhead;
pub mod structured;
mod subplans;
#[cfg(test)]
pub mod tests;
pub mod text;
pub mod tree;
pub mod validate;
pub mod writer;

pub use crate::report::PlanSource as Source;
pub use find::each_plan;
pub use json::{QUOTES, plan as from_json};
pub use node::{PlanNode, callees, callers_first};
pub use overhead::{Analysis, ClockOf, Inputs, ServerClock, report};
pub use tree::{Explained, Found, Node, Rows};
pub use validate::{Selected, executed};

use crate::report::Range;
use crate::statistics::{median, median_error};
use node::Callers;
use std::collections::BTreeMap;

/// A join of ten tables with thousands of partitions each has fewer nodes. A node takes about half a kilobyte of
/// memory.
pub const MAX_NODES: usize = 100_000;

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
    pub fn calls_per_process(&self) -> Range {
        self.nodes.iter().fold(Range::exactly(self.other_calls), |sum, node| sum + node.calls)
    }

    /// Returns the calls of the whole plan by all processes.
    pub fn all_calls(&self) -> Range {
        self.nodes.iter().fold(Range::exactly(self.other_calls), |sum, node| sum + node.all_calls)
    }

    /// Returns how many processes make calls at the same time, on average over all calls.
    pub fn concurrent_processes(&self) -> f64 {
        let per_process = self.calls_per_process().estimate;
        let all: f64 = self.nodes.iter().map(|node| node.calls.estimate * node.processes).sum();
        if per_process > 0.0 { (all + self.other_calls) / per_process } else { 1.0 }
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
    add(&mut nodes, root, None, "0".into(), 1.0);
    subplans::assign_callers(&mut nodes);
    nodes
}

/// Where a node is below its parent.
struct Place {
    parent: usize,
    /// number of inputs before it
    inputs_before: usize,
}

fn add(nodes: &mut Vec<PlanNode>, mut node: Node, place: Option<Place>, path: String, processes: f64) {
    /// EXPLAIN prints the time of one loop in ms with three decimals.
    const ROUNDING_MS: f64 = 0.0005;
    let children = std::mem::take(&mut node.plans);
    let parent = place.as_ref().map(|place| &nodes[place.parent]);
    let rows_are_calls = tree::is_known(&node.kind) && parent.is_none_or(|parent| parent.rows_are_calls);
    let is_inner = place.as_ref().is_some_and(|place| place.inputs_before > 0);
    let parent_node = parent.map(|parent| &parent.node);
    let all_calls = if rows_are_calls {
        node::calls(parent_node, &node, is_inner)
    } else {
        node::possible_calls(&node::calls(parent_node, &node, is_inner), &node)
    };
    let loops = node.loops.unwrap_or(0.0);
    let index = nodes.len();
    nodes.push(PlanNode {
        inputs: children.iter().filter(|child| child.subplan.is_none()).count(),
        path: path.clone(),
        parent: place.as_ref().map(|place| place.parent),
        end: index + 1,
        callers: place.map_or_else(Callers::default, |place| Callers::one(place.parent, node.subplan.is_none())),
        rows_are_calls,
        processes,
        all_calls,
        calls: node::per_process(all_calls, processes),
        reported_ms: node.total_ms.map(|ms| ms * loops / processes),
        rounding_ms: ROUNDING_MS * loops / processes,
        node,
    });
    let mut inputs_before = 0;
    for (n, child) in children.into_iter().enumerate() {
        let gather = &nodes[index].node;
        // Only the leader runs the subplans of a Gather.
        let below_gather = gather.is_gather() && child.subplan.is_none();
        let processes = if below_gather { node::processes_below_gather(&child, gather) } else { processes };
        let is_input = child.subplan.is_none();
        let place = Place { parent: index, inputs_before: if is_input { inputs_before } else { 0 } };
        add(nodes, child, Some(place), format!("{path}.{n}"), processes);
        inputs_before += usize::from(is_input);
    }
    nodes[index].end = nodes.len();
}

/// Counts the steps of a computation, so that tests can compare inputs of two sizes without measuring time.
pub mod steps {
    #[cfg(test)]
    thread_local! {
        static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// Adds steps of work. Does nothing outside of tests.
    pub fn count(steps: usize) {
        #[cfg(test)]
        STEPS.set(STEPS.get() + steps);
        _ = steps;
    }

    /// Returns the steps that `work` makes.
    #[cfg(test)]
    pub fn of(work: impl FnOnce()) -> usize {
        let before = STEPS.get();
        work();
        STEPS.get() - before
    }
}
