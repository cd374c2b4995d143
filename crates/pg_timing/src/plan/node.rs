//! One node of a flattened plan: its position in the tree, the nodes that call it, and how often they do. EXPLAIN prints rows
//! and loops; the number of calls follows from them.

use super::tree::{Node, Rows};
use crate::report::{NS_PER_MS, Range};

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

/// These nodes return all their results in one call.
const ONE_CALL_PER_LOOP: [&str; 4] = ["Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr"];

/// Returns the calls that `parent` made to `child`, over all processes. `is_inner`: it is not the first input.
///
/// Each loop needs one call per row, and one more that finds the end. A parent that needs only one row does not
/// look for the end.
pub fn calls(parent: Option<&Node>, child: &Node, is_inner: bool) -> Range {
    let loops = child.loops.unwrap_or(0.0);
    let Rows { per_loop: rows, rounding } = child.rows.unwrap_or_default();
    if ONE_CALL_PER_LOOP.contains(&child.kind.as_str()) {
        return Range::exactly(loops);
    }
    // A foreign server that modifies the rows directly needs one call, unless it returns rows.
    if child.kind == "Foreign Scan" && child.name.starts_with("Foreign ") && !child.name.starts_with("Foreign Scan") {
        let high = loops * (rows + rounding + 1.0);
        let returns_rows = parent.and_then(|parent| parent.rows).is_some_and(|rows| rows.per_loop > 0.0);
        return Range { low: loops, estimate: if returns_rows { high } else { loops }, high };
    }
    let rounding = if loops > 1.0 { rounding } else { 0.0 };
    let needs_one_row = is_inner
        && parent.is_some_and(|parent| {
            let finds_one = [" Semi Join", " Anti Join"].iter().any(|join| parent.name.ends_with(join));
            parent.kind == "Nested Loop" && (parent.inner_unique || finds_one)
        });
    // A Limit or an EXISTS may stop before the node below it finds the end. The plan does not show that.
    let low = (rows - rounding).max(1.0);
    Range {
        low: loops * low,
        estimate: loops * if needs_one_row { rows.max(1.0) } else { rows + 1.0 },
        high: loops * (rows + rounding + 1.0),
    }
}

/// Returns the calls of a node whose rows may not be calls: from none to those that its time allows.
pub fn possible_calls(calls: &Range, node: &Node) -> Range {
    /// The fastest timed call of any published plan took 3.3 ns more than an untimed one (PostgreSQL 19, TSC).
    const FASTEST_CALL_NS: f64 = 3.0;
    /// EXPLAIN rounds the time of a loop to this.
    const STEP_MS: f64 = 0.001;
    let loops = node.loops.unwrap_or(0.0);
    let longest_ns = (node.total_ms.unwrap_or(0.0) + STEP_MS) * loops * NS_PER_MS;
    let most = longest_ns / FASTEST_CALL_NS;
    Range { low: 0.0, estimate: calls.estimate.min(most), high: calls.high.min(most) }
}

/// Returns the calls of one process.
///
/// The upper bound assumes that the leader only collected the workers' rows, so the workers made all calls.
pub fn per_process(calls: Range, processes: f64) -> Range {
    Range { low: calls.low / processes, estimate: calls.estimate / processes, high: calls.high / workers(processes) }
}

/// Returns the number of processes that ran the input of a Gather, on average. Each ran it once per loop.
///
/// `Workers Launched` is not used: it describes the last loop only, and the leader may not have taken part.
pub fn processes_below_gather(input: &Node, gather: &Node) -> f64 {
    match (input.loops, gather.loops) {
        (Some(input_loops), Some(gather_loops)) if gather_loops > 0.0 => (input_loops / gather_loops).max(1.0),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Plan;

    fn plan(json: &str) -> Plan {
        Plan::new(serde_json::from_str(json).unwrap(), 0.0)
    }

    #[test]
    fn calls_and_times_are_per_process() {
        let plan = plan(
            r#"{"Plan": {"Node Type": "Gather", "Workers Launched": 2, "Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 1,
                "Plans": [{"Node Type": "Seq Scan", "Relation Name": "t", "Alias": "t", "Actual Total Time": 8.0, "Actual Rows": 100, "Actual Loops": 3}]}}"#,
        );
        let [gather, scan] = plan.nodes.as_slice() else { panic!("{plan:?}") };
        assert_eq!((gather.calls.estimate, scan.calls.estimate, scan.reported_ms), (301.0, 101.0, Some(8.0)));
        // The upper bound: two workers made all calls, and rounding hides half a row per loop.
        assert_eq!((scan.calls.low, scan.calls.high), (99.5, 101.5 * 3.0 / 2.0));
        assert_eq!((scan.path.as_str(), scan.node.title().as_str()), ("0.0", "Seq Scan on t"));
        assert_eq!((plan.calls_per_process().estimate, plan.all_calls().estimate), (402.0, 604.0));
        assert_eq!(plan.concurrent_processes(), 604.0 / 402.0);
    }

    #[test]
    fn processes_below_a_gather_follow_from_loops() {
        let run = |gather: &str, input_loops: f64, workers: f64| {
            let plan = plan(&format!(
                r#"{{"Plan": {{"Node Type": "Gather", "Workers Launched": {workers}, {gather}, "Plans": [
                    {{"Node Type": "Seq Scan", "Actual Total Time": 8.0, "Actual Rows": 100, "Actual Loops": {input_loops}}},
                    {{"Node Type": "Result", "Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1",
                      "Actual Total Time": 1.0, "Actual Rows": 1, "Actual Loops": 9}}]}}}}"#
            ));
            (plan.nodes[1].processes, plan.nodes[1].reported_ms.unwrap(), plan.nodes[2].processes)
        };
        let one_loop = r#""Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 1"#;
        assert_eq!(run(one_loop, 3.0, 2.0), (3.0, 8.0, 1.0));
        // The leader did not take part.
        assert_eq!(run(one_loop, 2.0, 2.0), (2.0, 8.0, 1.0));
        // The last loop got no workers.
        let ten_loops = r#""Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 10"#;
        assert_eq!(run(ten_loops, 28.0, 0.0), (2.8, 80.0, 1.0));
    }

    #[test]
    fn a_unique_inner_side_is_called_once_per_loop() {
        let plan = plan(
            r#"{"Plan": {"Node Type": "Nested Loop", "Inner Unique": true, "Join Type": "Inner", "Actual Rows": 1000, "Actual Loops": 1, "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Rows": 1000, "Actual Loops": 1},
                {"Node Type": "Index Scan", "Parent Relationship": "Inner", "Actual Rows": 1, "Actual Loops": 1000}]}}"#,
        );
        assert_eq!(plan.nodes.iter().map(|node| node.calls.estimate).collect::<Vec<_>>(), [1001.0, 1001.0, 1000.0]);
    }

    #[test]
    fn hash_and_bitmap_nodes_are_called_once_per_loop() {
        for kind in ["Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr"] {
            let plan = plan(&format!(
                r#"{{"Plan": {{"Node Type": "Limit", "Actual Rows": 1, "Actual Loops": 1, "Plans": [
                    {{"Node Type": "{kind}", "Actual Rows": 500, "Actual Loops": 3}}]}}}}"#
            ));
            let calls = plan.nodes[1].calls;
            assert_eq!((calls.low, calls.estimate, calls.high), (3.0, 3.0, 3.0), "{kind}");
        }
    }

    #[test]
    fn a_direct_foreign_modification_is_called_once_unless_it_returns_rows() {
        let calls = |returned: u32| {
            let plan = plan(&format!(
                r#"{{"Plan": {{"Node Type": "ModifyTable", "Actual Rows": {returned}, "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Foreign Scan", "Operation": "Update", "Actual Rows": 50, "Actual Loops": 1}}]}}}}"#
            ));
            let calls = plan.nodes[1].calls;
            (calls.low, calls.estimate, calls.high)
        };
        assert_eq!(calls(0), (1.0, 1.0, 51.5));
        assert_eq!(calls(50), (1.0, 51.5, 51.5));
    }

    #[test]
    fn triggers_and_serialized_rows_count_as_calls() {
        let plan = plan(
            r#"{"Plan": {"Node Type": "Result", "Actual Rows": 5, "Actual Loops": 1},
                "Triggers": [{"Calls": 3}], "Serialization": {"Time": 0.1}}"#,
        );
        assert_eq!(plan.other_calls, 8.0);
        assert_eq!(plan.calls_per_process().estimate, 14.0);
    }
}
