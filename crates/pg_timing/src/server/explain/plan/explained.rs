//! The JSON that `EXPLAIN (ANALYZE, FORMAT JSON)` prints for one statement.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// One statement in EXPLAIN's JSON. The text format is read into the same type.
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
    pub jit: Option<Value>,
    pub serialization: Option<Serialization>,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// pg_fast_timing's line
    #[serde(rename = "Fast Timing")]
    pub fast_timing: Option<String>,
    /// auto_explain's line
    #[serde(rename = "Query Text")]
    pub query: Option<String>,
}

impl Explained {
    /// Whether pg_fast_timing timed this plan: with another clock, or by sampling.
    pub fn uses_fast_timing(&self) -> bool {
        self.fast_timing.is_some() || self.plan.any(&|node| node.timing.is_some())
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
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(from = "serde_json::Number")]
pub struct Rows {
    pub per_loop: f64,
    /// maximum rounding error of `per_loop`
    pub rounding: f64,
}

impl Rows {
    /// Returns rows with their rounding error. PostgreSQL 15 to 17 print whole rows, and later versions print two decimals.
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
    /// `Update`, `Insert` and so on, if the node changes data
    #[serde(rename = "Operation")]
    pub operation: Option<String>,
    #[serde(rename = "Strategy")]
    pub strategy: Option<String>,
    #[serde(rename = "Inner Unique")]
    pub inner_unique: bool,
    /// time of one loop in ms, on average
    #[serde(rename = "Actual Total Time")]
    pub total_ms: Option<f64>,
    #[serde(rename = "Actual Rows")]
    pub rows: Option<Rows>,
    #[serde(rename = "Actual Loops")]
    pub loops: Option<f64>,
    /// present only if buffers were counted
    #[serde(rename = "Shared Hit Blocks")]
    pub buffers: Option<f64>,
    /// present only with track_io_timing
    #[serde(rename = "I/O Read Time", alias = "Shared I/O Read Time")]
    pub io_ms: Option<f64>,
    /// pg_fast_timing's `estimated` or `exact`
    #[serde(rename = "Timing")]
    pub timing: Option<String>,
    #[serde(rename = "Plans")]
    pub plans: Vec<Node>,
    /// conditions and other texts of the node that may use an InitPlan's value
    #[serde(flatten, deserialize_with = "conditions")]
    pub conditions: Vec<String>,
}

/// Collects the texts that may use an InitPlan's value. Other properties are dropped: a large plan has many.
fn conditions<'de, D: Deserializer<'de>>(properties: D) -> Result<Vec<String>, D::Error> {
    let properties = BTreeMap::<String, Value>::deserialize(properties)?;
    let texts = properties.into_values().flat_map(|value| match value {
        Value::Array(values) => values,
        value => vec![value],
    });
    Ok(texts
        .filter_map(|value| if let Value::String(text) = value { Some(text) } else { None })
        .filter(|text| may_use_init_plan(text))
        .collect())
}

/// Whether a condition may use an InitPlan's value: `(InitPlan 1).col1`, or `$0` before PostgreSQL 17.
pub fn may_use_init_plan(text: &str) -> bool {
    text.contains('$') || text.contains("InitPlan ")
}

impl Node {
    /// Returns the node's name as psql prints it: `Index Scan using i on t`.
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

    /// Returns the plan's structure without figures. Two runs used the same plan if their shapes are equal.
    pub fn shape(&self) -> String {
        let parts = [&self.relation, &self.index, &self.join, &self.strategy, &self.subplan, &self.cte];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        let children: Vec<String> = self.plans.iter().map(Node::shape).collect();
        format!("{}[{}]{{{}}}", self.kind, parts.join(" "), children.join(","))
    }

    /// Whether `test` holds for this node or any node below it.
    pub fn any(&self, test: &dyn Fn(&Node) -> bool) -> bool {
        test(self) || self.plans.iter().any(|plan| plan.any(test))
    }

    /// Returns the child nodes that are not subplans.
    pub fn inputs(&self) -> impl Iterator<Item = &Node> {
        self.plans.iter().filter(|plan| plan.subplan.is_none())
    }

    pub fn is_gather(&self) -> bool {
        self.kind.starts_with("Gather")
    }
}
