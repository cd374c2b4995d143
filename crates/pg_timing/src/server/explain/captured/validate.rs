//! Checks that a plan's figures can come from one run.

use super::errors::{SUPPORTED, not_executed};
use crate::error::Error;
use crate::server::explain::plan::{Explained, Node, Plan, PlanNode};

/// Returns the plan's execution time in ms, if the plan was executed and timed and its figures are possible.
pub fn execution_ms(explained: &Explained) -> Result<f64, Error> {
    let root = &explained.plan;
    if root.kind.is_empty() || root.loops.is_none() || root.rows.is_none() {
        return Err(not_executed());
    }
    let totals = explained.triggers.iter().map(|trigger| trigger.calls).chain(explained.execution_ms);
    if !totals.chain(explained.planning_ms).all(is_possible) || root.any(&|node| !has_possible_figures(node)) {
        return Err(Error::new("the plan has an impossible figure", SUPPORTED));
    }
    if root.total_ms.is_none() {
        return Err(Error::new(
            "the plan was taken with TIMING OFF: its nodes were not timed, so it has no clock overhead",
            "take it with EXPLAIN (ANALYZE), which times the nodes",
        ));
    }
    explained.execution_ms.ok_or_else(|| {
        Error::new(
            "the plan has no Execution Time",
            "the plan is truncated, or was taken with SUMMARY OFF; from a log, include the line \"duration: ... plan:\"",
        )
    })
}

/// Whether a figure is possible: no run takes 30 years (in ms), and no table has that many rows.
fn is_possible(figure: f64) -> bool {
    (0.0..=1e12).contains(&figure)
}

fn has_possible_figures(node: &Node) -> bool {
    let figures = [node.total_ms, node.rows.map(|rows| rows.per_loop), node.loops];
    figures.into_iter().flatten().all(is_possible)
}

/// Checks that no input is missing, that the root fits into the Execution Time, and that a node's inputs together take no
/// longer than the node.
///
/// Otherwise the plan has lost its indentation, is truncated, or mixes lines of two plans.
pub fn check_times(plan: &Plan) -> Result<(), Error> {
    let nodes = &plan.nodes;
    if let Some(cut) = nodes.iter().find(|node| node.inputs < least_inputs(&node.node.kind)) {
        return Err(Error::new(
            format!("the plan is truncated or has lost its indentation: {} has too few inputs", cut.node.title()),
            SUPPORTED,
        ));
    }
    // Sampled times of parent and child have independent errors.
    if plan.uses_fast_timing {
        return Ok(());
    }
    let root = &nodes[0];
    if root.reported_or_zero_ms() > with_tolerance(plan.execution_ms, root.rounding_ms) {
        return Err(Error::new(
            format!(
                "the plan's root took {} ms, but its Execution Time is {} ms",
                root.reported_or_zero_ms(),
                plan.execution_ms
            ),
            "the two are from different runs, or the server's clock ran backwards",
        ));
    }
    for (index, parent) in nodes.iter().enumerate() {
        // The times of a parent and its input are comparable if the same processes ran both.
        let inputs = || {
            nodes.iter().filter(|input| {
                input.caller == Some(index) && input.node.subplan.is_none() && input.processes == parent.processes
            })
        };
        let inputs_ms: f64 = inputs().map(PlanNode::reported_or_zero_ms).sum();
        let rounding: f64 = inputs().map(|input| input.rounding_ms).sum();
        if inputs_ms > with_tolerance(parent.reported_or_zero_ms(), parent.rounding_ms + rounding) {
            return Err(Error::new(
                format!(
                    "{} took {} ms, but its inputs took {inputs_ms} ms",
                    parent.node.title(),
                    parent.reported_or_zero_ms()
                ),
                "the plan's lines have lost their indentation, or the server's clock ran backwards",
            ));
        }
    }
    Ok(())
}

/// Returns the minimum number of inputs of a node type.
pub fn least_inputs(kind: &str) -> usize {
    match kind {
        "Nested Loop" | "Hash Join" | "Merge Join" | "Recursive Union" => 2,
        "Aggregate" | "Bitmap Heap Scan" | "Gather" | "Gather Merge" | "Group" | "Hash" | "Incremental Sort"
        | "Limit" | "LockRows" | "Materialize" | "Memoize" | "ProjectSet" | "Sort" | "Subquery Scan" | "Unique"
        | "WindowAgg" => 1,
        _ => 0,
    }
}

/// Returns the longest time that can be equal to `ms`: times are rounded, and NTP may adjust the clock meanwhile.
fn with_tolerance(ms: f64, rounding: f64) -> f64 {
    ms * 1.01 + rounding + 0.01
}
