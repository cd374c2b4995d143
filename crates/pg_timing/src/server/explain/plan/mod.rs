//! A plan that ran, out of EXPLAIN's JSON.

pub mod calls;
mod subplans;

use crate::report::Range;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
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
    pub jit: Option<Value>,
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
    /// `Update` and the like, of what changes data
    #[serde(rename = "Operation")]
    pub operation: Option<String>,
    #[serde(rename = "Strategy")]
    pub strategy: Option<String>,
    #[serde(rename = "Inner Unique")]
    pub inner_unique: bool,
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
    /// its conditions, and whatever else of it may name the value of an InitPlan
    #[serde(flatten, deserialize_with = "asking")]
    pub asks: Vec<String>,
}

/// Of all else that a node says. There is much of it, in plans of many nodes and runs.
fn asking<'de, D: Deserializer<'de>>(others: D) -> Result<Vec<String>, D::Error> {
    let others = BTreeMap::<String, Value>::deserialize(others)?;
    let texts = others.into_values().flat_map(|value| match value {
        Value::Array(values) => values,
        value => vec![value],
    });
    Ok(texts
        .filter_map(|value| if let Value::String(text) = value { Some(text) } else { None })
        .filter(|text| may_ask(text))
        .collect())
}

/// `(InitPlan 1).col1`, and `$0` before PostgreSQL 17.
pub(super) fn may_ask(text: &str) -> bool {
    text.contains('$') || text.contains("InitPlan ")
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

    /// What hangs below it but for subplans.
    pub fn inputs(&self) -> impl Iterator<Item = &Node> {
        self.plans.iter().filter(|plan| plan.subplan.is_none())
    }

    pub(super) fn is_gather(&self) -> bool {
        self.kind.starts_with("Gather")
    }

    /// Calls of `child`, by all processes. One more than the rows in each loop, which finds the
    /// end; unless whoever calls wants one row and no more.
    pub(super) fn calls_of(&self, child: &Node) -> Range {
        let loops = child.loops.unwrap_or(0.0);
        let Rows { each: rows, off } = child.rows.unwrap_or(Rows { each: 0.0, off: 0.0 });
        if ALL_AT_ONCE.contains(&child.kind.as_str()) {
            return Range { low: loops, estimate: loops, high: loops };
        }
        // A foreign server that changes all rows at once counts them all in one call, unless it returns them.
        if child.kind == "Foreign Scan" && child.operation.as_deref().is_some_and(|operation| operation != "Select") {
            let each = loops * (rows + off + 1.0);
            let returns = self.rows.is_some_and(|rows| rows.each > 0.0);
            return Range { low: loops, estimate: if returns { each } else { loops }, high: each };
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
