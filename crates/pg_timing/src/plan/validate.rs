//! Checks that a plan was executed and timed, and that its figures can come from one run. A file may be damaged, and a server's
//! clock may be faulty.

use super::errors::{self, COPY_IT_AGAIN};
use super::tree::{inputs_of, is_append, is_known};
use super::{Explained, Node, Plan, PlanNode, callees, steps};
use crate::error::Error;
use crate::report::PlanSource as Source;

/// A plan that can be analyzed.
#[derive(Debug)]
pub struct Selected {
    pub explained: Explained,
    pub execution_ms: f64,
    /// number of plans in the input
    pub plans: usize,
    /// number of this plan, from 1
    pub taken: usize,
    /// the text of the plan, if the caller needs it
    pub source: Option<Source>,
    /// what the user should know about the selection
    pub notes: Vec<String>,
}

/// Checks that the nodes of a plan were executed and timed, and that their figures are possible.
pub fn executed(mut explained: Explained) -> Result<Selected, Error> {
    if explained.time_correction.is_some() {
        return Err(errors::already_corrected());
    }
    let root = &explained.plan;
    if root.loops.is_none() || root.rows.is_none() {
        return Err(errors::not_executed());
    }
    check_figures(&explained)?;
    let Some(loop_ms) = root.total_ms else { return Err(errors::not_timed()) };
    let mut notes = std::mem::take(&mut explained.notes);
    let execution_ms = match (explained.execution_ms, root.loops) {
        (Some(ms), _) => ms,
        // Without the Execution Time, the root's time replaces it: it is the time of all nodes. But a sampled time is
        // only an estimate.
        (None, Some(loops)) if loops > 0.0 && !explained.uses_fast_timing() => {
            notes.push(
                "the plan has no Execution Time, so its topmost node's time is used. It excludes triggers, and the start and \
                 end of the execution. If lines are missing, the calls of their nodes are missing, too"
                    .into(),
            );
            // The calls of triggers, and of SERIALIZE, are not within the root's time.
            (explained.triggers, explained.serialization) = (Vec::new(), None);
            loop_ms * loops
        }
        (None, _) => return Err(errors::no_execution_time()),
    };
    Ok(Selected { explained, execution_ms, plans: 1, taken: 1, source: None, notes })
}

/// No run takes 30 years (in ms), and no table has that many rows.
const MAX_FIGURE: f64 = 1e12;
/// A call takes at least 1 ns, so 30 years are not enough for more calls.
const MAX_CALLS: f64 = 1e18;

/// Checks each figure that EXPLAIN printed.
pub fn check_figures(explained: &Explained) -> Result<(), Error> {
    let triggers = explained.triggers.iter().map(|trigger| ("Calls of a trigger", Some(trigger.calls)));
    let times = [("Execution Time", explained.execution_ms), ("Planning Time", explained.planning_ms)];
    for (name, value) in times.into_iter().chain(triggers) {
        check_figure(value, MAX_FIGURE, || name.into())?;
    }
    check_node_figures(&explained.plan)
}

fn check_node_figures(node: &Node) -> Result<(), Error> {
    for (name, value) in [
        ("Actual Total Time", node.total_ms),
        ("Actual Rows", node.rows.map(|rows| rows.per_loop)),
        ("Actual Loops", node.loops),
    ] {
        check_figure(value, MAX_FIGURE, || format!("{name} of {}", node.title()))?;
    }
    if lacks_rows(node) {
        return Err(wrong_inputs("few", node));
    }
    node.plans.iter().try_for_each(check_node_figures)
}

/// Returns an error for a figure that is negative, not a number, or beyond any real run.
fn check_figure(value: Option<f64>, most: f64, name: impl Fn() -> String) -> Result<(), Error> {
    match value {
        // The Debug format prints 1e300 with an exponent and not with 300 digits.
        Some(value) if !(0.0..=most).contains(&value) => Err(Error::new(
            format!("the plan has an impossible figure: {} is {value:?}", name()),
            "the plan is damaged, or the server's clock ran backwards",
        )),
        _ => Ok(()),
    }
}

fn wrong_inputs(many_or_few: &str, node: &Node) -> Error {
    let what = format!("the plan has lost lines or its indentation: {} has too {many_or_few} inputs", node.title());
    Error::new(what, COPY_IT_AGAIN)
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

/// Checks that no node has too few or too many inputs, that the root fits into the Execution Time, and that a node's inputs
/// together take no longer than the node.
///
/// Otherwise the plan has lost its indentation, is truncated, mixes lines of two plans, or the clock ran backwards. Nodes of
/// extensions and of PostgreSQL's relatives run their inputs in other ways, also in parallel: a plan with such nodes can
/// have any inputs and any times within them.
pub fn check_run(plan: &Plan) -> Result<(), Error> {
    let nodes = &plan.nodes;
    let is_postgresql = nodes.iter().all(|node| is_known(&node.node.kind));
    for node in nodes {
        // Each figure is possible, but their product may not be.
        check_figure(node.reported_ms, MAX_FIGURE, || format!("the time of {} in all loops", node.node.title()))?;
        check_figure(Some(node.all_calls.high), MAX_CALLS, || format!("the calls of {}", node.node.title()))?;
        let (least, most) = inputs_of(&node.node.kind).unwrap_or((0, usize::MAX));
        if node.inputs < least {
            return Err(wrong_inputs("few", &node.node));
        }
        if is_postgresql && node.inputs > most {
            return Err(wrong_inputs("many", &node.node));
        }
    }
    // Sampled times of parent and child have independent errors.
    if plan.uses_fast_timing {
        return Ok(());
    }
    let (root_ms, execution_ms) = (nodes[0].reported_or_zero_ms(), plan.execution_ms);
    if root_ms > with_tolerance(execution_ms, nodes[0].rounding_ms) {
        return Err(Error::new(
            format!("the plan's root took {root_ms} ms, but its Execution Time is {execution_ms} ms"),
            "the root's time and the Execution Time are from different runs, or the server's clock ran backwards",
        ));
    }
    if is_postgresql { check_inputs(nodes) } else { Ok(()) }
}

/// Checks that no node took less time than its inputs.
fn check_inputs(nodes: &[PlanNode]) -> Result<(), Error> {
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
            return Err(Error::new(
                format!("{} took {ms} ms, but its inputs took {inputs_ms} ms", parent.node.title()),
                "the plan's lines have lost their indentation, or the server's clock ran backwards",
            ));
        }
    }
    Ok(())
}

/// Returns the longest time that still counts as equal to `ms`: times are rounded, and NTP may adjust the clock
/// meanwhile.
pub fn with_tolerance(ms: f64, rounding: f64) -> f64 {
    ms * 1.01 + rounding + 0.01
}
