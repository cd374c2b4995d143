//! The tree of a plan as EXPLAIN printed it, and what is known about its kinds of nodes. Text, JSON, YAML and XML are read
//! into it.

use crate::report::PlanSource;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};

/// One statement in EXPLAIN's JSON. The other formats are read into the same type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Explained {
    #[serde(rename = "Plan")]
    pub root: Node,
    /// PostgreSQL 9.3 and older have the second name
    #[serde(rename = "Execution Time", alias = "Total Runtime")]
    pub execution_ms: Option<f64>,
    #[serde(rename = "Planning Time")]
    pub planning_ms: Option<f64>,
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    #[serde(rename = "JIT")]
    pub jit: Option<IgnoredAny>,
    pub serialization: Option<Serialization>,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// pg_fast_timing's line
    #[serde(rename = "Fast Timing")]
    pub fast_timing: Option<String>,
    /// pg_timing's own line: the plan's times are corrected
    #[serde(rename = "Time Correction")]
    pub time_correction: Option<String>,
    /// auto_explain's line
    #[serde(rename = "Query Text")]
    pub query: Option<String>,
    /// with VERBOSE and compute_query_id
    #[serde(rename = "Query Identifier")]
    pub query_id: Option<i64>,
    /// what the user should know about how a captured plan was read
    #[serde(skip)]
    pub notes: Vec<String>,
    /// the text of the plan, if the caller needs it
    #[serde(skip)]
    pub source: Option<PlanSource>,
}

impl Explained {
    /// Returns whether pg_fast_timing timed this plan: with another clock, or with estimates.
    pub fn uses_fast_timing(&self) -> bool {
        self.fast_timing.is_some() || self.root.any(&|node| node.is_fast_timed)
    }

    /// Returns the number of timed calls that belong to no plan node: triggers, and rows of SERIALIZE.
    pub fn other_calls(&self) -> f64 {
        let triggers: f64 = self.triggers.iter().map(|trigger| trigger.calls).sum();
        let times_rows = self.serialization.as_ref().is_some_and(|serialization| serialization.time_ms.is_some());
        triggers + if times_rows { self.root.rows.map_or(0.0, |rows| rows.per_loop) } else { 0.0 }
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

/// A node's rows per loop, as printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "serde_json::Number")]
pub struct Rows {
    pub per_loop: f64,
    /// maximum rounding error of `per_loop`
    pub rounding: f64,
}

impl Rows {
    /// Returns rows with their rounding error. PostgreSQL 15 to 17 print whole rows, and later versions print two
    /// decimals.
    pub fn new(per_loop: f64, decimals: bool) -> Rows {
        Rows { per_loop, rounding: if decimals { 0.005 } else { 0.5 } }
    }
}

impl From<serde_json::Number> for Rows {
    fn from(number: serde_json::Number) -> Rows {
        Rows::new(number.as_f64().unwrap_or_default(), number.is_f64())
    }
}

/// One plan node with its inputs and subplans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// as the text format prints it, like `Parallel Index Scan using i on t`
    pub name: String,
    /// as the JSON format prints it, like `Index Scan`
    pub kind: String,
    /// label of a subplan, like `CTE c` or `InitPlan 1`
    pub subplan: Option<String>,
    /// the CTE that the node reads
    pub cte: Option<String>,
    pub inner_unique: bool,
    /// time of one loop in ms, on average
    pub total_ms: Option<f64>,
    pub rows: Option<Rows>,
    pub loops: Option<f64>,
    pub has_buffers: bool,
    /// shared blocks that this node and those below it hit or read; only JSON is read
    pub shared_blocks: f64,
    /// present only with track_io_timing
    pub has_io_times: bool,
    /// pg_fast_timing's property shows how it timed this node
    pub is_fast_timed: bool,
    /// Citus shows only one of this many tasks
    pub hidden_tasks: Option<u32>,
    pub children: Vec<Node>,
    /// parameters in its conditions and other texts, through which it may use an InitPlan's value
    pub parameters: BTreeSet<String>,
}

impl Node {
    /// Returns the node's name, after the label of its subplan: `CTE c: Seq Scan on t`.
    pub fn title(&self) -> String {
        match &self.subplan {
            Some(label) => format!("{label}: {}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns the plan's structure without figures. Two runs used the same plan if their shapes are equal.
    pub fn shape(&self) -> String {
        let mut shape = String::new();
        self.add_shape(&mut shape);
        shape
    }

    fn add_shape(&self, shape: &mut String) {
        for part in [self.subplan.as_deref().unwrap_or_default(), &self.name, "{"] {
            shape.push_str(part);
        }
        self.children.iter().for_each(|child| child.add_shape(shape));
        shape.push('}');
    }

    /// Returns whether `test` holds for this node or any node below it.
    pub fn any(&self, test: &dyn Fn(&Node) -> bool) -> bool {
        test(self) || self.children.iter().any(|child| child.any(test))
    }

    /// Returns the child nodes that are not subplans.
    pub fn inputs(&self) -> impl Iterator<Item = &Node> {
        self.children.iter().filter(|child| child.subplan.is_none())
    }

    pub fn is_gather(&self) -> bool {
        ["Gather", "Gather Merge"].contains(&self.kind.as_str())
    }

    /// Returns all rows of all loops, and their rounding error.
    pub fn all_rows(&self) -> Rows {
        let (loops, rows) = (self.loops.unwrap_or(0.0), self.rows.unwrap_or_default());
        Rows { per_loop: rows.per_loop * loops, rounding: rows.rounding * loops }
    }

    /// Sets how many of Citus's tasks the plan does not show, from `All`, `One of 32`, or `None, not supported for
    /// re-partition queries`. Before this, it is the number of all tasks.
    pub fn set_tasks_shown(&mut self, shown: &str) {
        self.hidden_tasks = match shown.strip_prefix("One of ") {
            Some(all) => all.parse::<u32>().ok().and_then(|all| all.checked_sub(1)),
            None if shown.starts_with("None") => self.hidden_tasks,
            None => None,
        };
    }
}

/// Returns the least and the most inputs of a kind of node, without subplans. Returns `None` for nodes of extensions and
/// of forks of PostgreSQL. They may run their inputs in parallel, on other servers, or without one call per row.
pub fn inputs_of(kind: &str) -> Option<(usize, usize)> {
    Some(match kind {
        "Seq Scan"
        | "Sample Scan"
        | "Index Scan"
        | "Index Only Scan"
        | "Bitmap Index Scan"
        | "Tid Scan"
        | "Tid Range Scan"
        | "Function Scan"
        | "Table Function Scan"
        | "Values Scan"
        | "CTE Scan"
        | "Named Tuplestore Scan"
        | "WorkTable Scan" => (0, 0),
        "Result" | "Foreign Scan" => (0, 1),
        "Aggregate" | "Bitmap Heap Scan" | "Gather" | "Gather Merge" | "Group" | "Hash" | "Incremental Sort"
        | "Limit" | "LockRows" | "Materialize" | "Memoize" | "ProjectSet" | "Sort" | "Subquery Scan" | "Unique"
        | "WindowAgg" => (1, 1),
        "Nested Loop" | "Hash Join" | "Merge Join" | "Recursive Union" => (2, 2),
        // two inputs since PostgreSQL 18
        "SetOp" => (1, 2),
        "Append" | "Merge Append" | "BitmapAnd" | "BitmapOr" | "ModifyTable" => (0, usize::MAX),
        _ => return None,
    })
}

/// Returns whether a kind of node is one of PostgreSQL's own.
pub fn is_known(kind: &str) -> bool {
    inputs_of(kind).is_some()
}

pub fn is_append(kind: &str) -> bool {
    ["Append", "Merge Append"].contains(&kind)
}

/// Returns the parameters in a text: `(InitPlan 1).col1` has `InitPlan 1`. Before PostgreSQL 17 it is written `$0`.
pub fn parameters_in(text: &str) -> impl Iterator<Item = &str> {
    signs_with_names(text, "$", |c| c.is_ascii_digit()).chain(signs_with_names(text, "InitPlan ", is_in_name))
}

fn signs_with_names<'a>(text: &'a str, sign: &'static str, belongs: fn(char) -> bool) -> impl Iterator<Item = &'a str> {
    text.match_indices(sign).filter_map(move |(at, _)| {
        let start = at + sign.len();
        let rest = &text[start..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        (length > 0).then(|| &text[at..start + length])
    })
}

/// PostgreSQL 19 has names like `InitPlan expr_1`.
fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the parameters that an InitPlan sets, from its label: `InitPlan 1`, or before PostgreSQL 17
/// `InitPlan 1 (returns $0,$1)`.
pub fn parameters_of_init_plan(label: &str) -> Vec<&str> {
    match label.split_once(" (returns ") {
        Some((_, values)) => values.trim_end_matches(')').split(',').collect(),
        None => vec![label],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_conditions() {
        let all = |text: &'static str| parameters_in(text).collect::<Vec<_>>();
        assert_eq!(all("((a > $0) AND (b = $12))"), ["$0", "$12"]);
        assert_eq!(all("(a = (InitPlan 1).col1)"), ["InitPlan 1"]);
        assert_eq!(all("(a = (InitPlan expr_2).col1)"), ["InitPlan expr_2"]);
        assert_eq!(all("(a = '$'::text) $"), [""; 0]);
        assert_eq!(all("(InitPlan )"), [""; 0]);
    }

    #[test]
    fn labels_name_the_parameters() {
        assert_eq!(parameters_of_init_plan("InitPlan 1 (returns $0,$1)"), ["$0", "$1"]);
        assert_eq!(parameters_of_init_plan("InitPlan 1"), ["InitPlan 1"]);
    }
}
