//! Checks that a plan's figures can come from one run. A file may be damaged, and a server's clock may be faulty.

use super::kinds::{self, is_append, is_known};
use super::{Explained, Node, Plan, PlanNode, callees, steps};

/// Why a plan's figures cannot come from one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Impossible {
    /// negative, not a number, or beyond any real run
    Figure {
        /// its key in the JSON format, and the node
        name: String,
        value: f64,
    },
    TooManyCalls {
        node: String,
        calls: f64,
    },
    TooLong {
        node: String,
        ms: f64,
    },
    TooFewInputs {
        node: String,
    },
    TooManyInputs {
        node: String,
    },
    RootTookLonger {
        root_ms: f64,
        execution_ms: f64,
    },
    InputsTookLonger {
        node: String,
        ms: f64,
        inputs_ms: f64,
    },
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The Debug format prints 1e300 with an exponent and not with 300 digits.
            Impossible::Figure { name, value } => write!(f, "the plan has an impossible figure: {name} is {value:?}"),
            Impossible::TooManyCalls { node, calls } => {
                write!(f, "the plan has an impossible figure: {calls:?} calls of {node}")
            }
            Impossible::TooLong { node, ms } => {
                write!(f, "the plan has an impossible figure: {node} took {ms:?} ms in all loops")
            }
            Impossible::TooFewInputs { node } => {
                write!(f, "the plan is truncated or has lost its indentation: {node} has too few inputs")
            }
            Impossible::TooManyInputs { node } => {
                write!(f, "the plan has lost lines or its indentation: {node} has too many inputs")
            }
            Impossible::RootTookLonger { root_ms, execution_ms } => {
                write!(f, "the plan's root took {root_ms} ms, but its Execution Time is {execution_ms} ms")
            }
            Impossible::InputsTookLonger { node, ms, inputs_ms } => {
                write!(f, "{node} took {ms} ms, but its inputs took {inputs_ms} ms")
            }
        }
    }
}

/// No run takes 30 years (in ms), and no table has that many rows.
const MAX_FIGURE: f64 = 1e12;
/// A call takes at least 1 ns, so 30 years are not enough for more calls.
const MAX_CALLS: f64 = 1e18;

fn is_possible(figure: f64) -> bool {
    (0.0..=MAX_FIGURE).contains(&figure)
}

/// Checks each figure that EXPLAIN printed.
pub fn check_figures(explained: &Explained) -> Result<(), Impossible> {
    let of_plan = [("Execution Time", explained.execution_ms), ("Planning Time", explained.planning_ms)];
    for (name, value) in of_plan {
        check_figure(value, || name.into())?;
    }
    for trigger in &explained.triggers {
        check_figure(Some(trigger.calls), || "Calls of a trigger".into())?;
    }
    check_node_figures(&explained.plan)
}

fn check_node_figures(node: &Node) -> Result<(), Impossible> {
    let of_node = [
        ("Actual Total Time", node.total_ms),
        ("Actual Rows", node.rows.map(|rows| rows.per_loop)),
        ("Actual Loops", node.loops),
    ];
    for (name, value) in of_node {
        check_figure(value, || format!("{name} of {}", node.title()))?;
    }
    if lacks_rows(node) {
        return Err(Impossible::TooFewInputs { node: node.title() });
    }
    node.plans.iter().try_for_each(check_node_figures)
}

/// Returns whether an Append has more rows than its inputs: lines of the plan are missing. Each of its rows comes from an
/// input. A node of an extension may count its rows in another way.
fn lacks_rows(node: &Node) -> bool {
    if !is_append(&node.kind) || node.inputs().any(|input| !is_known(&input.kind)) {
        return false;
    }
    let own = node.all_rows();
    let (inputs, rounding) = node
        .inputs()
        .map(Node::all_rows)
        .fold((0.0, own.rounding), |sum, rows| (sum.0 + rows.per_loop, sum.1 + rows.rounding));
    own.per_loop > inputs + rounding
}

fn check_figure(value: Option<f64>, name: impl Fn() -> String) -> Result<(), Impossible> {
    match value {
        Some(value) if !is_possible(value) => Err(Impossible::Figure { name: name(), value }),
        _ => Ok(()),
    }
}

/// Checks that no node has too few or too many inputs, that the root fits into the Execution Time, and that a node's inputs
/// together take no longer than the node.
///
/// Otherwise the plan has lost its indentation, is truncated, mixes lines of two plans, or the clock ran backwards. Nodes of
/// extensions and of PostgreSQL's relatives run their inputs in other ways, also in parallel: a plan with such nodes can
/// have any inputs and any times within them.
pub fn check_run(plan: &Plan) -> Result<(), Impossible> {
    let nodes = &plan.nodes;
    let is_postgresql = nodes.iter().all(|node| is_known(&node.node.kind));
    for node in nodes {
        // Each figure is possible, but their product may not be.
        if let Some(ms) = node.reported_ms.filter(|&ms| !is_possible(ms)) {
            return Err(Impossible::TooLong { node: node.node.title(), ms });
        }
        let calls = node.all_calls.high;
        if !(0.0..=MAX_CALLS).contains(&calls) {
            return Err(Impossible::TooManyCalls { node: node.node.title(), calls });
        }
        let (least, most) = kinds::inputs(&node.node.kind).unwrap_or((0, usize::MAX));
        if node.inputs < least {
            return Err(Impossible::TooFewInputs { node: node.node.title() });
        }
        if is_postgresql && node.inputs > most {
            return Err(Impossible::TooManyInputs { node: node.node.title() });
        }
    }
    // Sampled times of parent and child have independent errors.
    if plan.uses_fast_timing {
        return Ok(());
    }
    let (root_ms, execution_ms) = (nodes[0].reported_or_zero_ms(), plan.execution_ms);
    if root_ms > with_tolerance(execution_ms, nodes[0].rounding_ms) {
        return Err(Impossible::RootTookLonger { root_ms, execution_ms });
    }
    if is_postgresql { check_inputs(nodes) } else { Ok(()) }
}

/// Checks that no node took less time than its inputs.
fn check_inputs(nodes: &[PlanNode]) -> Result<(), Impossible> {
    for (parent, callees) in nodes.iter().zip(callees(nodes)) {
        steps::count(callees.len());
        // The times of a parent and its input are comparable if the same processes ran both.
        let inputs = || {
            let inputs = callees.iter().map(|&(input, _)| &nodes[input]);
            inputs.filter(|input| input.node.subplan.is_none() && input.processes == parent.processes)
        };
        let inputs_ms: f64 = inputs().map(PlanNode::reported_or_zero_ms).sum();
        let rounding: f64 = inputs().map(|input| input.rounding_ms).sum();
        let ms = parent.reported_or_zero_ms();
        if inputs_ms > with_tolerance(ms, parent.rounding_ms + rounding) {
            return Err(Impossible::InputsTookLonger { node: parent.node.title(), ms, inputs_ms });
        }
    }
    Ok(())
}

/// Returns the longest time that still counts as equal to `ms`: times are rounded, and NTP may adjust the clock
/// meanwhile.
pub fn with_tolerance(ms: f64, rounding: f64) -> f64 {
    ms * 1.01 + rounding + 0.01
}
