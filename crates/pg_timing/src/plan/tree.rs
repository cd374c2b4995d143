//! The tree of a plan as EXPLAIN printed it. Text, JSON, YAML and XML are read into it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};

/// One statement in EXPLAIN's JSON. The other formats are read into the same type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Explained {
    pub plan: Node,
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
}

impl Explained {
    /// Returns whether pg_fast_timing timed this plan: with another clock, or by sampling.
    pub fn uses_fast_timing(&self) -> bool {
        self.fast_timing.is_some() || self.plan.any(&|node| node.is_fast_timed)
    }

    /// Returns the number of timed calls that belong to no plan node: triggers, and rows of SERIALIZE.
    pub fn other_calls(&self) -> f64 {
        let triggers: f64 = self.triggers.iter().map(|trigger| trigger.calls).sum();
        let times_rows = self.serialization.as_ref().is_some_and(|serialization| serialization.time_ms.is_some());
        triggers + if times_rows { self.plan.rows.map_or(0.0, |rows| rows.per_loop) } else { 0.0 }
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
    /// present only with track_io_timing
    pub has_io_times: bool,
    /// pg_fast_timing's property shows how it timed this node
    pub is_fast_timed: bool,
    /// Citus shows only one of this many tasks
    pub hidden_tasks: Option<u32>,
    pub plans: Vec<Node>,
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
        self.plans.iter().for_each(|plan| plan.add_shape(shape));
        shape.push('}');
    }

    /// Returns whether `test` holds for this node or any node below it.
    pub fn any(&self, test: &dyn Fn(&Node) -> bool) -> bool {
        test(self) || self.plans.iter().any(|plan| plan.any(test))
    }

    /// Returns the child nodes that are not subplans.
    pub fn inputs(&self) -> impl Iterator<Item = &Node> {
        self.plans.iter().filter(|plan| plan.subplan.is_none())
    }

    pub fn is_gather(&self) -> bool {
        ["Gather", "Gather Merge"].contains(&self.kind.as_str())
    }

    /// Returns all rows of all loops, and their rounding error.
    pub fn all_rows(&self) -> Rows {
        let (loops, rows) = (self.loops.unwrap_or(0.0), self.rows.unwrap_or_default());
        Rows { per_loop: rows.per_loop * loops, rounding: rows.rounding * loops }
    }

    /// Sets how many of Citus's tasks the plan does not show, from `One of 32`.
    pub fn set_tasks_shown(&mut self, shown: &str) {
        self.hidden_tasks = shown.strip_prefix("One of ").and_then(|all| all.parse::<u32>().ok()?.checked_sub(1));
    }
}
