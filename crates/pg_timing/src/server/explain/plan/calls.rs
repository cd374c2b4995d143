//! A plan's nodes in a row, with the calls and times of each.

use super::subplans;
use super::{Explained, Node};
use crate::report::Range;
use crate::statistics::{median, spread};

/// A node's place and what the correction needs of it; in the order of the tree, the root first.
#[derive(Clone, Debug)]
pub struct Flat<'a> {
    pub node: &'a Node,
    pub depth: usize,
    /// indexes from the root down, like `0.1`
    pub path: String,
    /// the node within whose calls it runs
    pub within: Option<usize>,
    /// that ran it side by side
    pub processes: f64,
    /// of each process, on average
    pub calls: Range,
    /// as EXPLAIN ANALYZE says, of each process on average; `None` without timing
    pub reported_ms: Option<f64>,
    /// what rounding of the printed time comes to, over all loops
    pub rounded_ms: f64,
    /// calls of all nodes that run within its own
    pub calls_below: Range,
}

/// Calls of a whole plan, by each process.
pub fn all_calls(nodes: &[Flat], explained: &Explained) -> Range {
    let other = explained.other_calls();
    nodes.iter().fold(Range { low: other, estimate: other, high: other }, |sum, node| sum + node.calls)
}

/// All processes' calls: those that one CPU has seen, if they had to take turns at it.
pub fn calls_of_all_processes(nodes: &[Flat], explained: &Explained) -> f64 {
    explained.other_calls() + nodes.iter().map(|node| node.calls.high * others(node.processes)).sum::<f64>()
}

/// Of how many processes calls are made at a time, on average.
pub fn calls_at_once(nodes: &[Flat], explained: &Explained) -> f64 {
    let each = all_calls(nodes, explained).estimate;
    let more: f64 = nodes.iter().map(|node| node.calls.estimate * (node.processes - 1.0)).sum();
    if each > 0.0 { 1.0 + more / each } else { 1.0 }
}

/// For each node, those that run within it, and within none of the others.
pub fn below(nodes: &[Flat]) -> Vec<Vec<usize>> {
    let mut below = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        if let Some(above) = node.within {
            below[above].push(at);
        }
    }
    below
}

/// How far the middle of some part of the root's time may be off, in ms, by the runs' shares; 0 of a single one.
pub fn spread_of(plans: &[Vec<Flat>], ms: impl Fn(&[Flat]) -> Option<f64>) -> f64 {
    let root = |plan: &Vec<Flat>| plan.first()?.reported_ms.filter(|&root| root > 0.0);
    let shares: Vec<f64> = plans.iter().filter_map(|plan| Some(ms(plan)? / root(plan)?)).collect();
    let roots: Vec<f64> = plans.iter().filter_map(root).collect();
    if shares.len() > 1 { spread(&shares) * median(&roots) } else { 0.0 }
}

/// All nodes of a plan.
pub fn flat(root: &Node) -> Vec<Flat<'_>> {
    let mut all = Vec::new();
    // Whoever runs a statement calls its root like any other node.
    let caller = Node::default();
    add(&mut all, root, &caller, None, "0".into(), 1.0);
    subplans::move_all(&mut all);
    for at in 0..all.len() {
        // Not longer than the tree is deep, whatever a file says of CTEs.
        let above: Vec<usize> =
            std::iter::successors(all[at].within, |&above| all[above].within).take(all.len()).collect();
        let calls = all[at].calls;
        for above in above {
            all[above].calls_below = all[above].calls_below + calls;
        }
    }
    all
}

fn add<'a>(
    all: &mut Vec<Flat<'a>>,
    node: &'a Node,
    parent: &Node,
    within: Option<usize>,
    path: String,
    processes: f64,
) {
    /// Times are printed in ms with three decimals, for one loop.
    const ROUNDED_MS: f64 = 0.0005;
    let index = all.len();
    let loops = node.loops.unwrap_or(0.0);
    all.push(Flat {
        node,
        depth: within.map_or(0, |above| all[above].depth + 1),
        path: path.clone(),
        within,
        processes,
        calls: by_each(parent.calls_of(node), processes),
        reported_ms: node.total_ms.map(|ms| ms * loops / processes),
        rounded_ms: ROUNDED_MS * loops / processes,
        calls_below: Range::default(),
    });
    for (n, child) in node.plans.iter().enumerate() {
        // What hangs beside a Gather's input is run by the leader alone.
        let below = if node.is_gather() && child.subplan.is_none() { processes_of(child, node) } else { processes };
        add(all, child, node, Some(index), format!("{path}.{n}"), below);
    }
}

/// That ran a Gather's input, on average: each once in each of its loops. How many were launched is told
/// of the last loop only, and the leader may have had no part in it.
fn processes_of(input: &Node, gather: &Node) -> f64 {
    match (input.loops, gather.loops) {
        (Some(these), Some(those)) if those > 0.0 => (these / those).max(1.0),
        _ => 1.0,
    }
}

/// The share of one of several processes. The leader may have been busy with their rows: then the
/// others did it all.
fn by_each(calls: Range, processes: f64) -> Range {
    Range { low: calls.low / processes, estimate: calls.estimate / processes, high: calls.high / others(processes) }
}

/// Processes besides the leader; or the only one.
fn others(processes: f64) -> f64 {
    (processes - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str) -> Explained {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn calls_and_times_are_of_each_process() {
        let explained = plan(
            r#"{"Plan": {"Node Type": "Gather", "Workers Launched": 2, "Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 1,
                "Plans": [{"Node Type": "Seq Scan", "Relation Name": "t", "Alias": "t", "Actual Total Time": 8.0, "Actual Rows": 100, "Actual Loops": 3}]},
                "Execution Time": 10.5}"#,
        );
        let all = flat(&explained.plan);
        assert_eq!((all[0].calls.estimate, all[1].calls.estimate, all[1].reported_ms), (301.0, 101.0, Some(8.0)));
        // By the workers alone, with the third row that the whole number of rows may hide.
        assert_eq!((all[1].calls.low, all[1].calls.high), (99.5, 101.5 * 3.0 / 2.0));
        assert_eq!((all[1].path.as_str(), all[1].node.title().as_str()), ("0.0", "Seq Scan on t"));
    }

    #[test]
    fn processes_are_those_that_ran_it() {
        let of = |gather: &str, input: f64, workers: f64| {
            let explained = plan(&format!(
                r#"{{"Plan": {{"Node Type": "Gather", "Workers Launched": {workers}, {gather}, "Plans": [
                    {{"Node Type": "Seq Scan", "Actual Total Time": 8.0, "Actual Rows": 100, "Actual Loops": {input}}},
                    {{"Node Type": "Result", "Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1",
                      "Actual Total Time": 1.0, "Actual Rows": 1, "Actual Loops": 9}}]}}}}"#
            ));
            let all = flat(&explained.plan);
            (all[1].processes, all[1].reported_ms.unwrap(), all[2].processes)
        };
        let once = r#""Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 1"#;
        assert_eq!(of(once, 3.0, 2.0), (3.0, 8.0, 1.0));
        // The leader had no part in it.
        assert_eq!(of(once, 2.0, 2.0), (2.0, 8.0, 1.0));
        // No workers were free the last time.
        let often = r#""Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 10"#;
        assert_eq!(of(often, 28.0, 0.0), (2.8, 80.0, 1.0));
    }

    #[test]
    fn one_row_is_enough() {
        let explained = plan(
            r#"{"Plan": {"Node Type": "Nested Loop", "Inner Unique": true, "Join Type": "Inner", "Actual Rows": 1000, "Actual Loops": 1, "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Rows": 1000, "Actual Loops": 1},
                {"Node Type": "Index Scan", "Parent Relationship": "Inner", "Actual Rows": 1, "Actual Loops": 1000}]}}"#,
        );
        let all = flat(&explained.plan);
        assert_eq!(all.iter().map(|node| node.calls.estimate).collect::<Vec<_>>(), [1001.0, 1001.0, 1000.0]);
    }
}
