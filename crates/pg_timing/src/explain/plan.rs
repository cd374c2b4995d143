//! A plan that ran, out of EXPLAIN's JSON.

use crate::report::Range;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What `EXPLAIN (ANALYZE, FORMAT JSON)` prints of one statement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Explained {
    pub plan: Node,
    #[serde(rename = "Execution Time")]
    pub execution_ms: Option<f64>,
    #[serde(rename = "Planning Time")]
    pub planning_ms: Option<f64>,
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    #[serde(rename = "JIT")]
    pub jit: Option<serde_json::Value>,
    pub serialization: Option<Serialization>,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// of pg_fast_timing, where it was asked
    #[serde(rename = "Fast Timing")]
    pub fast_timing: Option<String>,
    /// by auto_explain
    #[serde(rename = "Query Text")]
    pub query: Option<String>,
}

impl Explained {
    /// Whether pg_fast_timing says that it timed this: by another clock, or without one.
    pub fn timed_fast(&self) -> bool {
        self.fast_timing.is_some() || self.plan.any(&|node| node.timing.is_some())
    }

    /// Calls that are timed beside those of the nodes.
    pub fn other_calls(&self) -> f64 {
        let triggers: f64 = self.triggers.iter().map(|trigger| trigger.calls).sum();
        let serialized = self.serialization.as_ref().is_some_and(|serialization| serialization.time_ms.is_some());
        // SERIALIZE times each row.
        triggers + if serialized { self.plan.rows.map_or(0.0, |rows| rows.each) } else { 0.0 }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Trigger {
    #[serde(default)]
    pub calls: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Serialization {
    #[serde(rename = "Time")]
    pub time_ms: Option<f64>,
}

/// Rows of a loop on average, as printed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(from = "serde_json::Number")]
pub struct Rows {
    pub each: f64,
    /// what rounding may have taken or given
    pub off: f64,
}

impl Rows {
    /// PostgreSQL prints whole rows before 18 and two decimals since.
    pub fn new(each: f64, decimals: bool) -> Rows {
        Rows { each, off: if decimals { 0.005 } else { 0.5 } }
    }
}

impl From<serde_json::Number> for Rows {
    fn from(number: serde_json::Number) -> Rows {
        Rows::new(number.as_f64().unwrap_or_default(), number.is_f64())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    #[serde(rename = "Node Type")]
    pub kind: String,
    #[serde(rename = "Parent Relationship")]
    pub relationship: Option<String>,
    #[serde(rename = "Subplan Name")]
    pub subplan: Option<String>,
    #[serde(rename = "CTE Name")]
    pub cte: Option<String>,
    #[serde(rename = "Relation Name")]
    pub relation: Option<String>,
    #[serde(rename = "Alias")]
    pub alias: Option<String>,
    #[serde(rename = "Index Name")]
    pub index: Option<String>,
    #[serde(rename = "Join Type")]
    pub join: Option<String>,
    #[serde(rename = "Strategy")]
    pub strategy: Option<String>,
    #[serde(rename = "Inner Unique")]
    pub inner_unique: bool,
    #[serde(rename = "Workers Launched")]
    pub workers_launched: Option<f64>,
    #[serde(rename = "Actual Total Time")]
    pub total_ms: Option<f64>,
    #[serde(rename = "Actual Rows")]
    pub rows: Option<Rows>,
    #[serde(rename = "Actual Loops")]
    pub loops: Option<f64>,
    /// there only if buffers were counted
    #[serde(rename = "Shared Hit Blocks")]
    pub buffers: Option<f64>,
    /// there only with track_io_timing
    #[serde(rename = "I/O Read Time", alias = "Shared I/O Read Time")]
    pub io_ms: Option<f64>,
    /// `estimated` or `exact`, of pg_fast_timing
    #[serde(rename = "Timing")]
    pub timing: Option<String>,
    #[serde(rename = "Plans")]
    pub plans: Vec<Node>,
}

/// These produce all they have in one call.
const ALL_AT_ONCE: [&str; 4] = ["Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr"];

impl Node {
    /// As psql would name it: `Index Scan using i on t`.
    pub fn title(&self) -> String {
        let mut title = self.kind.clone();
        if let Some(index) = &self.index {
            title += &format!(" using {index}");
        }
        match (&self.relation, &self.alias) {
            (Some(relation), Some(alias)) if relation != alias => title += &format!(" on {relation} {alias}"),
            (Some(relation), _) => title += &format!(" on {relation}"),
            (None, Some(alias)) => title += &format!(" on {alias}"),
            (None, None) => {}
        }
        if let Some(subplan) = &self.subplan {
            title = format!("{subplan}: {title}");
        }
        title
    }

    /// What makes two plans the same plan: all but figures.
    pub fn shape(&self) -> String {
        let parts = [&self.relation, &self.index, &self.join, &self.strategy, &self.subplan, &self.cte];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        let children: Vec<String> = self.plans.iter().map(Node::shape).collect();
        format!("{}[{}]{{{}}}", self.kind, parts.join(" "), children.join(","))
    }

    /// Whether it is so of this node or one below.
    pub fn any(&self, is: &dyn Fn(&Node) -> bool) -> bool {
        is(self) || self.plans.iter().any(|plan| plan.any(is))
    }

    fn is_gather(&self) -> bool {
        self.kind.starts_with("Gather")
    }

    /// Calls of `child`, by all processes. One more than the rows in each loop, which finds the
    /// end; unless whoever calls wants one row and no more.
    fn calls_of(&self, child: &Node) -> Range {
        let loops = child.loops.unwrap_or(0.0);
        let Rows { each: rows, off } = child.rows.unwrap_or(Rows { each: 0.0, off: 0.0 });
        if ALL_AT_ONCE.contains(&child.kind.as_str()) {
            return Range { low: loops, estimate: loops, high: loops };
        }
        let off = if loops > 1.0 { off } else { 0.0 };
        let one_is_enough = child.relationship.as_deref() == Some("Inner")
            && self.kind == "Nested Loop"
            && (self.inner_unique || matches!(self.join.as_deref(), Some("Semi" | "Anti")));
        // Nobody asks for the end of what a Limit or an EXISTS stands on, and no plan says so.
        let low = (rows - off).max(1.0);
        Range {
            low: loops * low,
            estimate: loops * if one_is_enough { rows.max(1.0) } else { rows + 1.0 },
            high: loops * (rows + off + 1.0),
        }
    }
}

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

/// All nodes of a plan.
pub fn flat(root: &Node) -> Vec<Flat<'_>> {
    let mut all = Vec::new();
    // Whoever runs a statement calls its root like any other node.
    let caller = Node::default();
    add(&mut all, root, &caller, None, "0".into(), 1.0);
    move_ctes(&mut all);
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
    let below = match node.workers_launched {
        // The leader works, too.
        Some(workers) if node.is_gather() => workers + 1.0,
        _ => processes,
    };
    for (n, child) in node.plans.iter().enumerate() {
        // An InitPlan of a parallel plan is run by the leader.
        let initial = child.relationship.as_deref() == Some("InitPlan");
        add(all, child, node, Some(index), format!("{path}.{n}"), if initial { processes } else { below });
    }
}

/// The share of one of several processes. The leader may have been busy with their rows: then the
/// others did it all.
fn by_each(calls: Range, processes: f64) -> Range {
    let others = (processes - 1.0).max(1.0);
    Range { low: calls.low / processes, estimate: calls.estimate / processes, high: calls.high / others }
}

/// A CTE's plan hangs where the CTE is defined, and runs within the first node that reads it.
fn move_ctes(all: &mut [Flat]) {
    for plan in 0..all.len() {
        let Some(name) = all[plan].node.subplan.as_deref().and_then(|name| name.strip_prefix("CTE ")) else { continue };
        let inside = format!("{}.", all[plan].path);
        let scan = all.iter().position(|node| {
            node.node.kind == "CTE Scan" && node.node.cte.as_deref() == Some(name) && !node.path.starts_with(&inside)
        });
        if scan.is_some() {
            all[plan].within = scan;
        }
    }
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
    fn one_row_is_enough() {
        let explained = plan(
            r#"{"Plan": {"Node Type": "Nested Loop", "Inner Unique": true, "Join Type": "Inner", "Actual Rows": 1000, "Actual Loops": 1, "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Rows": 1000, "Actual Loops": 1},
                {"Node Type": "Index Scan", "Parent Relationship": "Inner", "Actual Rows": 1, "Actual Loops": 1000}]}}"#,
        );
        let all = flat(&explained.plan);
        assert_eq!(all.iter().map(|node| node.calls.estimate).collect::<Vec<_>>(), [1001.0, 1001.0, 1000.0]);
    }

    #[test]
    fn a_cte_runs_within_its_scan() {
        let explained = plan(
            r#"{"Plan": {"Node Type": "Limit", "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Rows": 9, "Actual Loops": 1},
                {"Node Type": "Sort", "Plans": [{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Rows": 10, "Actual Loops": 1}]}]}}"#,
        );
        let all = flat(&explained.plan);
        assert_eq!(all.iter().map(|node| node.within).collect::<Vec<_>>(), [None, Some(3), Some(0), Some(2)]);
        assert_eq!(all.iter().map(|node| node.calls_below.estimate).collect::<Vec<_>>(), [21.0, 0.0, 21.0, 10.0]);
    }
}
