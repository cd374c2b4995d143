//! The tree of a plan as EXPLAIN printed it, and what is known about its kinds of nodes. Text, JSON, YAML and XML are read
//! into it.

use crate::report::PlanSource;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Formatter, Result as FmtResult};

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
    /// lines before it in its text, if they are known
    #[serde(skip)]
    pub line: u64,
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
        let below: String = self.children.iter().map(Node::shape).collect();
        format!("{}{}{{{below}}}", self.subplan.as_deref().unwrap_or_default(), self.name)
    }

    /// Returns whether `test` holds for this node or any node below it.
    pub fn any(&self, test: &dyn Fn(&Node) -> bool) -> bool {
        test(self) || self.children.iter().any(|child| child.any(test))
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
    // Most texts have none. Two searches, one for each sign, would take longer than the rest of the reader.
    memchr::memchr2_iter(b'$', b'P', text.as_bytes()).filter_map(|at| {
        let (before, sign) = text.split_at(at);
        if sign.starts_with('$') {
            return with_name(sign, 1, |c| c.is_ascii_digit());
        }
        let begin = before.strip_suffix("Init").filter(|_| sign.starts_with("Plan "))?.len();
        // PostgreSQL 19 has names like `InitPlan expr_1`.
        with_name(&text[begin..], "InitPlan ".len(), |c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Returns the sign at the beginning of a text, with the name after it, if it has one.
fn with_name(text: &str, sign: usize, belongs: fn(char) -> bool) -> Option<&str> {
    let length = text[sign..].find(|c| !belongs(c)).unwrap_or(text.len() - sign);
    (length > 0).then(|| &text[..sign + length])
}

/// Returns the parameters that an InitPlan sets, from its label: `InitPlan 1`, or before PostgreSQL 17
/// `InitPlan 1 (returns $0,$1)`.
pub fn parameters_of_init_plan(label: &str) -> Vec<&str> {
    match label.split_once(" (returns ") {
        Some((_, values)) => values.trim_end_matches(')').split(',').collect(),
        None => vec![label],
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_map(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut Formatter) -> FmtResult {
        f.write_str("a plan node")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut node = Node::default();
        let mut name = NameParts::default();
        while let Some(Borrowed(key)) = map.next_key()? {
            match &*key {
                "Node Type" => node.kind = map.next_value()?,
                "Subplan Name" => node.subplan = map.next_value()?,
                "CTE Name" => node.cte = map.next_value()?,
                "Parallel Aware" => name.prefix += if map.next_value()? { "Parallel " } else { "" },
                "Async Capable" => name.prefix += if map.next_value()? { "Async " } else { "" },
                "Function Name" | "Table Function Name" | "Tuplestore Name" => {
                    name.parts.push(("Function".into(), map.next_value()?));
                }
                part if NAME_PARTS.contains(&part) => name.parts.push((key, map.next_value()?)),
                "Inner Unique" => node.inner_unique = map.next_value()?,
                "Actual Total Time" => node.total_ms = map.next_value()?,
                "Actual Rows" => node.rows = map.next_value()?,
                "Actual Loops" => node.loops = map.next_value()?,
                "Shared Hit Blocks" | "Shared Read Blocks" => {
                    node.has_buffers = true;
                    node.shared_blocks += map.next_value::<f64>()?;
                }
                "I/O Read Time" | "Shared I/O Read Time" => node.has_io_times = map.next_value::<IgnoredAny>().is_ok(),
                "Timing" => node.is_fast_timed = map.next_value::<IgnoredAny>().is_ok(),
                "Task Count" => node.hidden_tasks = map.next_value()?,
                "Tasks Shown" => node.set_tasks_shown(&map.next_value::<Cow<str>>()?),
                "Plans" => node.children = map.next_value()?,
                // A parameter has no character that JSON escapes.
                _ => node.parameters.extend(parameters_in(map.next_value::<&RawValue>()?.get()).map(String::from)),
            }
        }
        // An object without a kind is no node. So a text has at most as many nodes as it has kinds.
        if node.kind.is_empty() {
            return Err(serde::de::Error::missing_field("Node Type"));
        }
        node.name = name.name_of(&node);
        Ok(node)
    }
}

/// Properties that only the node's name needs.
#[rustfmt::skip]
const NAME_PARTS: [&str; 11] = [
    "Relation Name", "Schema", "Alias", "Index Name", "Scan Direction", "Join Type", "Strategy", "Partial Mode", "Operation",
    "Command", "Custom Plan Provider",
];

/// A text of JSON, without a copy: serde copies the text of a plain `Cow`.
#[derive(Default, Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// The properties that only the node's name needs. JSON has them apart from each other.
#[derive(Default)]
struct NameParts<'a> {
    parts: Vec<(Cow<'a, str>, Borrowed<'a>)>,
    prefix: String,
}

impl NameParts<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.parts.iter().rev().find(|(name, _)| name == key).map(|(_, value)| &*value.0)
    }

    /// Returns the name that `ExplainNode()` in explain.c prints: `Parallel Index Scan Backward using i on t a`.
    fn name_of(&self, node: &Node) -> String {
        self.prefix.clone() + &self.operator(&node.kind) + &self.index_part(&node.kind) + &self.target(node)
    }

    /// Returns what the node does, without its objects.
    fn operator(&self, kind: &str) -> String {
        let strategy = self.get("Strategy");
        match (kind, self.get("Operation")) {
            ("ModifyTable", Some(operation)) => operation.into(),
            ("Foreign Scan", Some(operation)) if operation != "Select" => format!("Foreign {operation}"),
            ("Custom Scan", _) => {
                self.get("Custom Plan Provider").map_or(kind.into(), |provider| format!("Custom Scan ({provider})"))
            }
            ("Aggregate", _) => {
                let aggregate = match strategy {
                    Some("Sorted") => "GroupAggregate",
                    Some("Hashed") => "HashAggregate",
                    Some("Mixed") => "MixedAggregate",
                    _ => "Aggregate",
                };
                let mode = self.get("Partial Mode").filter(|mode| *mode != "Simple");
                mode.map_or(aggregate.into(), |mode| format!("{mode} {aggregate}"))
            }
            ("SetOp", _) => {
                let name = if strategy == Some("Hashed") { "HashSetOp" } else { "SetOp" };
                format!("{name} {}", self.get("Command").unwrap_or_default()).trim_end().into()
            }
            // The type of the join is between the two words, as in `Hash Left Join`.
            ("Nested Loop" | "Hash Join" | "Merge Join", _) => match self.get("Join Type") {
                None | Some("Inner") => kind.into(),
                Some(join) => format!("{} {join} Join", kind.strip_suffix(" Join").unwrap_or(kind)),
            },
            _ => kind.into(),
        }
    }

    fn index_part(&self, kind: &str) -> String {
        let Some(index) = self.get("Index Name").map(quoted) else { return String::new() };
        match self.get("Scan Direction") {
            _ if kind == "Bitmap Index Scan" => format!(" on {index}"),
            Some("Backward") => format!(" Backward using {index}"),
            _ => format!(" using {index}"),
        }
    }

    /// Returns the table, function or CTE, with its alias if that differs: ` on schema.object alias`.
    fn target(&self, node: &Node) -> String {
        let object = self.get("Relation Name").or(self.get("Function")).or(node.cte.as_deref()).map(quoted);
        let alias = self.get("Alias").map(quoted);
        let schema = self.get("Schema").map_or(String::new(), |schema| quoted(schema) + ".");
        match (object, alias) {
            (Some(object), Some(alias)) if object != alias => format!(" on {schema}{object} {alias}"),
            (Some(object), _) => format!(" on {schema}{object}"),
            (None, Some(alias)) => format!(" on {alias}"),
            (None, None) => String::new(),
        }
    }
}

/// Returns a name in quotation marks, unless it is a lower-case word that needs none. EXPLAIN also quotes key words.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if is_plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_properties_are_searched_for_parameters() {
        let node: Node = serde_json::from_str(
            r#"{"Node Type": "Result", "Filter": "(a > $1)", "Output": ["b", "(InitPlan 2).col1", 7, null],
                "Plan Rows": 5, "Cost": -1.5, "Async": true, "I/O": {"Prefetch": 3}}"#,
        )
        .unwrap();
        assert_eq!(Vec::from_iter(&node.parameters), ["$1", "InitPlan 2"]);
        assert!(serde_json::from_str::<Node>("{}").is_err());
    }

    fn title(properties: &str) -> String {
        serde_json::from_str::<Node>(&format!("{{{properties}}}")).unwrap().title()
    }

    #[test]
    fn operators_have_the_names_of_the_text_format() {
        for (properties, expected) in [
            (
                r#""Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize""#,
                "Finalize GroupAggregate",
            ),
            (r#""Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Partial""#, "Partial HashAggregate"),
            (r#""Node Type": "Aggregate", "Strategy": "Mixed", "Partial Mode": "Simple""#, "MixedAggregate"),
            (r#""Node Type": "Aggregate", "Strategy": "Plain""#, "Aggregate"),
            (r#""Node Type": "Nested Loop", "Join Type": "Inner""#, "Nested Loop"),
            (r#""Node Type": "Nested Loop", "Join Type": "Left""#, "Nested Loop Left Join"),
            (r#""Node Type": "Hash Join", "Join Type": "Inner", "Parallel Aware": true"#, "Parallel Hash Join"),
            (r#""Node Type": "Hash Join", "Join Type": "Right Semi""#, "Hash Right Semi Join"),
            (r#""Node Type": "Merge Join", "Join Type": "Full""#, "Merge Full Join"),
            (r#""Node Type": "Merge Join""#, "Merge Join"),
            (r#""Node Type": "Hash", "Parallel Aware": true, "Async Capable": false"#, "Parallel Hash"),
            (r#""Node Type": "SetOp", "Strategy": "Hashed", "Command": "Intersect All""#, "HashSetOp Intersect All"),
            (r#""Node Type": "SetOp", "Strategy": "Sorted", "Command": "Except""#, "SetOp Except"),
            (r#""Node Type": "Custom Scan", "Custom Plan Provider": "Citus Adaptive""#, "Custom Scan (Citus Adaptive)"),
            (r#""Node Type": "Custom Scan""#, "Custom Scan"),
            (r#""Node Type": "Gather Merge", "Parallel Aware": false"#, "Gather Merge"),
        ] {
            assert_eq!(title(properties), expected);
        }
    }

    #[test]
    fn objects_have_the_names_of_the_text_format() {
        for (properties, expected) in [
            (r#""Node Type": "ModifyTable", "Operation": "Insert", "Relation Name": "t", "Alias": "t""#, "Insert on t"),
            (
                r#""Node Type": "Seq Scan", "Parallel Aware": true, "Relation Name": "t", "Schema": "s", "Alias": "a""#,
                "Parallel Seq Scan on s.t a",
            ),
            (
                r#""Node Type": "Index Scan", "Scan Direction": "Backward", "Index Name": "i", "Relation Name": "t", "Alias": "t""#,
                "Index Scan Backward using i on t",
            ),
            (
                r#""Node Type": "Index Only Scan", "Scan Direction": "Forward", "Index Name": "I", "Relation Name": "user", "Alias": "user""#,
                "Index Only Scan using \"I\" on user",
            ),
            (r#""Node Type": "Bitmap Index Scan", "Index Name": "i""#, "Bitmap Index Scan on i"),
            (
                r#""Node Type": "Foreign Scan", "Operation": "Select", "Async Capable": true, "Relation Name": "f", "Alias": "f_1""#,
                "Async Foreign Scan on f f_1",
            ),
            (
                r#""Node Type": "Foreign Scan", "Operation": "Update", "Relation Name": "f", "Alias": "f""#,
                "Foreign Update on f",
            ),
            (r#""Node Type": "Foreign Scan", "Operation": "Select""#, "Foreign Scan"),
            (
                r#""Node Type": "Custom Scan", "Custom Plan Provider": "x", "Relation Name": "t", "Alias": "t""#,
                "Custom Scan (x) on t",
            ),
            (
                r#""Node Type": "Function Scan", "Function Name": "generate_series", "Alias": "g""#,
                "Function Scan on generate_series g",
            ),
            (
                r#""Node Type": "Table Function Scan", "Table Function Name": "xmltable", "Alias": "x""#,
                "Table Function Scan on xmltable x",
            ),
            (r#""Node Type": "Values Scan", "Alias": "*VALUES*""#, "Values Scan on \"*VALUES*\""),
            (r#""Node Type": "CTE Scan", "CTE Name": "c", "Alias": "a""#, "CTE Scan on c a"),
            (r#""Node Type": "WorkTable Scan", "CTE Name": "c", "Alias": "c""#, "WorkTable Scan on c"),
            (
                r#""Node Type": "Seq Scan", "Relation Name": "a\"B", "Alias": "a\"B", "Subplan Name": "CTE c""#,
                "CTE c: Seq Scan on \"a\"\"B\"",
            ),
        ] {
            assert_eq!(title(properties), expected);
        }
    }

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
