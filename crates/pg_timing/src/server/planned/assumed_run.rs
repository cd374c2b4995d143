//! The run that the planner expects: rows and loops of each node, as if EXPLAIN ANALYZE had printed them.
//!
//! The planner prints rows per loop, but no loops. They follow from the tree: the inner side of a nested loop runs once
//! per outer row, other inputs run once. A Limit stops its input early.

#[cfg(test)]
mod tests;

use super::planner_node::{PlannerNode, SubplanUse};
use crate::server::explain::{Explained, Node, Plan, Rows};

/// cost_recursive_union() in costsize.c assumes that a recursion ends after ten rounds.
const ROUNDS_OF_RECURSION: f64 = 10.0;
/// get_parallel_divisor() in costsize.c: the leader spends this part of its time per worker on reading their rows.
const LEADER_PER_WORKER: f64 = 0.3;

/// No execution returns so many rows, or has so many loops. The limit keeps products of the planner's figures finite.
const MAX_ROWS: f64 = 1e15;

/// How to share the error of a join's rows between its inputs. It can come from either input, or from the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// half of the error comes from the outer input
    Half,
    /// the outer input has as many rows as possible
    Most,
}

/// Returns the plan with the rows and loops of one execution. `actual_rows` is the mean number of rows that an
/// execution returned or changed, if it is known.
pub fn assumed_run(root: &PlannerNode, actual_rows: Option<f64>, share: Share) -> Plan {
    let part = Part { scale: scale_of(root, actual_rows), share, ..Part::ONCE };
    let plan = run(root, part, None);
    Plan::new(Explained { plan, ..Explained::default() }, 0.0)
}

/// Returns how many times as many rows as planned the root returned or changed.
fn scale_of(root: &PlannerNode, actual_rows: Option<f64>) -> f64 {
    // The rows of a statement that changes data are those of its input.
    let planned =
        if root.kind == "ModifyTable" { root.inputs().next().map_or(0.0, |input| input.rows) } else { root.rows };
    match actual_rows {
        // The planner expects at least one row.
        Some(rows) if planned > 0.0 && rows.is_finite() => rows.max(0.0) / planned,
        _ => 1.0,
    }
}

/// The processes that run a node.
#[derive(Clone, Copy, Debug)]
struct Processes {
    number: f64,
    /// the planner divides the rows of a parallel node by this
    divisor: f64,
}

impl Processes {
    const ONE: Processes = Processes { number: 1.0, divisor: 1.0 };

    fn of_gather(gather: &PlannerNode) -> Processes {
        let workers = gather.workers;
        match gather.single_copy || workers < 1.0 {
            true => Processes::ONE,
            // With parallel_leader_participation off, the leader does not help. EXPLAIN does not show that.
            false => {
                Processes { number: workers + 1.0, divisor: workers + (1.0 - LEADER_PER_WORKER * workers).max(0.0) }
            }
        }
    }
}

/// The part of a node's work that its caller asks for.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// over all processes
    loops: f64,
    /// fraction of the rows that the caller reads before it stops
    fraction: f64,
    /// actual rows per planned row
    scale: f64,
    processes: Processes,
    /// fraction of the loops of a Memoize that do not find their rows in its cache
    misses: f64,
    share: Share,
}

impl Part {
    const ONCE: Part =
        Part { loops: 1.0, fraction: 1.0, scale: 1.0, processes: Processes::ONE, misses: 1.0, share: Share::Half };
}

/// Returns the node as executed. `rows_limit` is the most rows per loop that the caller can have read.
fn run(node: &PlannerNode, part: Part, rows_limit: Option<f64>) -> Node {
    let shared = if node.is_partial() { part.processes.divisor / part.processes.number } else { 1.0 };
    let rows = node.rows * shared * part.scale * part.fraction;
    let rows = rows.min(rows_limit.unwrap_or(MAX_ROWS)).min(MAX_ROWS);
    let part = Part { loops: part.loops.min(MAX_ROWS), ..part };
    let mut plans: Vec<Node> = Vec::with_capacity(node.plans.len());
    let mut outer_rows = None;
    for child in &node.plans {
        let plan = match &child.subplan {
            Some(name) => run(child, subplan_part(node, child, name, rows, part), None),
            None => {
                let plan = input(node, child, part, outer_rows);
                outer_rows.get_or_insert(total_rows(&plan));
                plan
            }
        };
        plans.push(plan);
    }
    Node {
        name: node.kind.clone(),
        kind: node.kind.clone(),
        relationship: node.relationship.clone(),
        subplan: node.subplan.clone(),
        join: node.join.clone(),
        operation: node.operation.clone(),
        strategy: node.strategy.clone(),
        inner_unique: node.inner_unique,
        rows: Some(Rows { per_loop: rows, rounding: 0.0 }),
        loops: Some(part.loops),
        plans,
        ..Node::default()
    }
}

fn total_rows(node: &Node) -> f64 {
    node.rows.map_or(0.0, |rows| rows.per_loop) * node.loops.unwrap_or(0.0)
}

/// Returns an input as executed. `outer_rows` are the rows of the first input, in all loops, if this is another one.
fn input(node: &PlannerNode, child: &PlannerNode, part: Part, outer_rows: Option<f64>) -> Node {
    let is_first = outer_rows.is_none();
    let part = Part { scale: input_scale(node, is_first, part), ..part };
    let all = Part { fraction: 1.0, ..part };
    match (node.kind.as_str(), outer_rows) {
        ("Gather" | "Gather Merge", _) => {
            let processes = Processes::of_gather(node);
            run(child, Part { loops: part.loops * processes.number, processes, ..part }, None)
        }
        ("Nested Loop", Some(outer)) => {
            let misses = if child.kind == "Memoize" { memoize_misses(node, child) } else { 1.0 };
            run(child, Part { loops: outer, fraction: 1.0, scale: 1.0, misses, ..part }, most_inner_rows(node))
        }
        // A second loop reads the stored rows. Each process stores them itself.
        ("Materialize", _) => run(child, Part { loops: part.loops.min(part.processes.number), ..part }, None),
        ("Memoize", _) => run(child, Part { loops: part.loops * part.misses, misses: 1.0, ..all }, None),
        ("Recursive Union", Some(_)) => run(child, Part { loops: part.loops * ROUNDS_OF_RECURSION, ..part }, None),
        ("Append" | "Merge Append", _) if node.is_partial() && child.is_partial() => {
            run(child, Part { scale: part.scale * partial_scale(node), ..part }, None)
        }
        ("Limit", _) => limited(node, child, part),
        ("Aggregate", _) if node.strategy.as_deref() != Some("Sorted") => run(child, all, None),
        ("SetOp", _) if node.strategy.as_deref() == Some("Hashed") => run(child, all, None),
        ("Sort" | "Hash" | "WindowAgg" | "ModifyTable", _) => run(child, all, None),
        _ => run(child, part, None),
    }
}

/// Returns how the rows of an input change if the node returns another number of rows than planned.
fn input_scale(node: &PlannerNode, is_first: bool, Part { scale, share, .. }: Part) -> f64 {
    match node.kind.as_str() {
        // Each row of the node is one row of an input.
        "Append" | "Gather" | "Gather Merge" | "Incremental Sort" | "Limit" | "LockRows" | "Materialize"
        | "Merge Append" | "ModifyTable" | "Result" | "Sort" | "Subquery Scan" | "WindowAgg" => scale,
        // An outer row has at most one inner row.
        "Nested Loop" | "Hash Join" | "Merge Join" if is_first && node.inner_unique => scale,
        "Nested Loop" | "Hash Join" | "Merge Join" if is_first => match share {
            Share::Half => scale.sqrt(),
            Share::Most => scale.max(1.0),
        },
        // The rows of an aggregate say nothing about its input.
        _ => 1.0,
    }
}

/// Returns how many rows an input of a parallel Append has per planned row. The planner divides the rows of each input by the
/// workers that it planned for this input alone, and the rows of the Append by those of the whole plan.
fn partial_scale(append: &PlannerNode) -> f64 {
    let rows: f64 = append.inputs().map(|input| input.rows).sum();
    if rows > 0.0 { append.rows / rows } else { 1.0 }
}

/// Returns the rows of a nested loop per outer row, if no condition removes rows after the inner side. The planner prints at
/// least one row for the inner side, also if most outer rows have no match.
fn most_inner_rows(node: &PlannerNode) -> Option<f64> {
    let stops_at_first = node.inner_unique || matches!(node.join.as_deref(), Some("Semi" | "Anti"));
    let outer = node.inputs().next()?.rows;
    let has_filter = node.join_filter.is_some() || node.filter.is_some();
    let per_outer_row =
        (!has_filter && outer > 0.0 && node.join.as_deref() == Some("Inner")).then(|| node.rows / outer);
    let limits = [stops_at_first.then_some(1.0), per_outer_row];
    limits.into_iter().flatten().reduce(f64::min)
}

/// Returns the fraction of the lookups of a Memoize that run its input. Only 19 prints it, but it is a part of the
/// join's cost: each loop costs the input's cost times this fraction (cost_memoize_rescan() in costsize.c).
fn memoize_misses(join: &PlannerNode, memoize: &PlannerNode) -> f64 {
    let (Some(outer), Some(input)) = (join.inputs().next(), memoize.inputs().next()) else { return 1.0 };
    let more_loops = outer.rows - 1.0;
    if more_loops < 1.0 || input.total_cost <= 0.0 {
        return 1.0;
    }
    let loop_cost = (join.total_cost - outer.total_cost - memoize.total_cost) / more_loops;
    (loop_cost / input.total_cost).clamp(1.0 / outer.rows, 1.0)
}

/// Returns the input of a Limit, which stops after the limit. The costs show OFFSET, too, which the rows do not contain.
fn limited(node: &PlannerNode, child: &PlannerNode, part: Part) -> Node {
    let by_rows = if child.rows > 0.0 { node.rows / child.rows } else { 1.0 };
    let run_cost = child.total_cost - child.startup_cost;
    let by_cost = if run_cost > 0.0 { (node.total_cost - child.startup_cost) / run_cost } else { by_rows };
    let planned = by_rows.max(by_cost).clamp(0.0, 1.0);
    // `scale` applies to the rows that the Limit returns, and not to the rows that its input could return.
    let wanted = planned * part.scale * part.fraction;
    run(child, Part { fraction: wanted.min(1.0), scale: wanted.max(1.0), ..part }, None)
}

/// Returns how a subplan runs.
fn subplan_part(node: &PlannerNode, subplan: &PlannerNode, name: &str, rows: f64, part: Part) -> Part {
    // EXISTS and scalar subqueries read at most one row, and an ARRAY reads all. EXPLAIN does not show which one it is.
    let one_row = if subplan.rows > 1.0 { 1.0 / subplan.rows } else { 1.0 };
    let once = Part { share: part.share, ..Part::ONCE };
    if name.starts_with("CTE ") {
        return once;
    }
    if name.starts_with("InitPlan") {
        return Part { fraction: one_row, ..once };
    }
    let base = name.split(" (").next().unwrap_or(name);
    match node.use_of(base) {
        SubplanUse::Hashed => Part { loops: part.processes.number.min(part.loops), ..once },
        SubplanUse::InOutput => Part { loops: rows * part.loops, fraction: one_row, ..once },
        SubplanUse::InCondition => {
            // The planner adds the cost of the subplan once per row before the filter.
            let inputs_cost: f64 = node.inputs().map(|input| input.total_cost).sum();
            let runs = (node.total_cost - inputs_cost) / (subplan.total_cost * one_row).max(0.01);
            let shared = if node.is_partial() { part.processes.divisor / part.processes.number } else { 1.0 };
            Part { loops: (runs * shared).max(rows).max(1.0) * part.loops, fraction: one_row, ..once }
        }
    }
}
