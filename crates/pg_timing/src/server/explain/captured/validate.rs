//! Whether a plan's figures can be those of one run.

use super::{UNDERSTOOD, not_run};
use crate::error::Error;
use crate::server::explain::plan::calls::Flat;
use crate::server::explain::plan::{Explained, Node};

/// The time that the plan says it took, if its figures can be those of a run.
pub fn usable(explained: &Explained) -> Result<f64, Error> {
    let root = &explained.plan;
    if root.kind.is_empty() || root.loops.is_none() || root.rows.is_none() {
        return Err(not_run());
    }
    let own = explained.triggers.iter().map(|trigger| trigger.calls).chain(explained.execution_ms);
    if !own.chain(explained.planning_ms).all(plausible) || root.any(&|node| !sound(node)) {
        return Err(Error::new("the plan has a figure that no run can have", UNDERSTOOD));
    }
    if root.total_ms.is_none() {
        return Err(Error::new(
            "the plan was taken with TIMING OFF: its nodes were not timed, so none of it is the clock",
            "take it with EXPLAIN (ANALYZE), which times them",
        ));
    }
    explained.execution_ms.ok_or_else(|| {
        Error::new(
            "the plan has no Execution Time",
            "it is cut off, or was taken with SUMMARY OFF; a log has it as \"duration: ... plan:\"",
        )
    })
}

/// 30 years in ms; and as many rows no table has.
fn plausible(figure: f64) -> bool {
    (0.0..=1e12).contains(&figure)
}

fn sound(node: &Node) -> bool {
    let figures = [node.total_ms, node.rows.map(|rows| rows.each), node.loops];
    figures.into_iter().flatten().all(plausible)
}

/// A node runs within its parent's calls, and the root within the execution: what takes longer hangs in the
/// wrong place, or is of another plan.
pub fn fits_together(all: &[Flat], explained: &Explained, execution_ms: f64) -> Result<(), Error> {
    if let Some(cut) = all.iter().find(|node| node.node.inputs().count() < least_inputs(&node.node.kind)) {
        return Err(Error::new(
            format!("the plan is cut off, or has lost its indentation: {} has too few inputs", cut.node.title()),
            UNDERSTOOD,
        ));
    }
    // By samples, each is known as well as it is.
    if explained.timed_fast() {
        return Ok(());
    }
    let root = &all[0];
    if total(root) > most(execution_ms, root.rounded_ms) {
        return Err(Error::new(
            format!("the plan's root took {} ms, and its Execution Time is {execution_ms} ms", total(root)),
            "they are not of the same run, or the server's clock ran backwards",
        ));
    }
    for (at, parent) in all.iter().enumerate() {
        // Of several processes that run a node, each runs its inputs as well.
        let inputs = || {
            all.iter().filter(|input| {
                input.within == Some(at) && input.node.subplan.is_none() && input.processes == parent.processes
            })
        };
        let taken: f64 = inputs().map(total).sum();
        let rounded: f64 = inputs().map(|input| input.rounded_ms).sum();
        if taken > most(total(parent), parent.rounded_ms + rounded) {
            return Err(Error::new(
                format!("{} took {} ms, and what hangs below it {taken} ms", parent.node.title(), total(parent)),
                "the plan's lines have lost their indentation, or the server's clock ran backwards",
            ));
        }
    }
    Ok(())
}

/// How many inputs a node of that kind has at least.
pub fn least_inputs(kind: &str) -> usize {
    match kind {
        "Nested Loop" | "Hash Join" | "Merge Join" | "Recursive Union" => 2,
        "Aggregate" | "Bitmap Heap Scan" | "Gather" | "Gather Merge" | "Group" | "Hash" | "Incremental Sort"
        | "Limit" | "LockRows" | "Materialize" | "Memoize" | "ProjectSet" | "Sort" | "Subquery Scan" | "Unique"
        | "WindowAgg" => 1,
        _ => 0,
    }
}

fn total(node: &Flat) -> f64 {
    node.reported_ms.unwrap_or(0.0)
}

/// What may look like so many ms: rounded, and by a clock that may be put right meanwhile.
fn most(ms: f64, rounded: f64) -> f64 {
    ms * 1.01 + rounded + 0.01
}
