//! Reads plans from JSON: EXPLAIN's list, auto_explain's single plan, or rows of a table. Properties and values that pg_timing
//! does not need are skipped and take no memory.

use super::text::FIGURES;
use super::tree::{Explained, Node, parameters_in};
use super::unusable::Unusable;
use super::{Found, MAX_NODES};
use crate::json::is_quote;
use memchr::memmem;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Formatter, Result as FmtResult};

/// Levels around a plan or a text. Each level is read once more.
const MAX_LEVELS: usize = 10;

/// Passes the plans of a value to `found`, each with its JSON. Values without a plan take no memory. `format` is that of the
/// original. Returns its strings, one per line, if they contain a plan in text format or in another format.
pub fn each(value: &str, format: &'static str, found: &mut dyn FnMut(Found, &str)) -> Option<String> {
    let mut texts = String::new();
    each_in(value, format, MAX_LEVELS, &mut texts, found);
    FIGURES.iter().chain(&["Node Type", "Node-Type"]).any(|sign| texts.contains(sign)).then_some(texts)
}

fn each_in(value: &str, format: &'static str, levels: usize, texts: &mut String, found: &mut dyn FnMut(Found, &str)) {
    let Some(levels) = levels.checked_sub(1) else { return };
    match value.as_bytes().first() {
        // The value is valid JSON, so there is no error.
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
            elements.into_iter().for_each(|element| each_in(element.get(), format, levels, texts, found));
        }
        Some(b'{') => {
            let entries: BTreeMap<Cow<str>, &RawValue> = match serde_json::from_str(value) {
                Ok(entries) => entries,
                Err(error) => return found(Err(unreadable(format, &error)), value),
            };
            if entries.contains_key("Plan") {
                return found(plan(value, format), value);
            }
            let others = entries.into_iter().filter(|(key, _)| !is_quote(key));
            others.for_each(|(_, entry)| each_in(entry.get(), format, levels, texts, found));
        }
        // Rows of a plan are one text.
        Some(b'"') => {
            *texts += &serde_json::from_str::<Cow<str>>(value).unwrap_or_default();
            texts.push('\n');
        }
        _ => {}
    }
}

/// Reads one statement of EXPLAIN's JSON. `format` is that of the original.
pub fn plan(json: &str, format: &'static str) -> Found {
    // Each node has this key, so its number limits the memory.
    if memmem::find_iter(json.as_bytes(), "\"Node Type\"").nth(MAX_NODES).is_some() {
        return Err(Unusable::TooManyNodes);
    }
    serde_json::from_str::<Explained>(json).map_err(|error| unreadable(format, &error))
}

/// Returns why the parser refused a value.
pub fn unreadable(format: &'static str, error: &serde_json::Error) -> Unusable {
    let text = error.to_string();
    match text.contains("recursion limit") {
        true => Unusable::TooDeep,
        // The position does not refer to the original file.
        false => Unusable::InvalidSyntax(format, text.split(" at line ").next().unwrap_or_default().into()),
    }
}

impl<'de> serde::Deserialize<'de> for Node {
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
        while let Some(key) = map.next_key::<Cow<str>>()? {
            match &*key {
                "Node Type" => node.kind = map.next_value()?,
                "Subplan Name" => node.subplan = map.next_value()?,
                "CTE Name" => node.cte = map.next_value()?,
                "Parallel Aware" => name.prefix += if map.next_value()? { "Parallel " } else { "" },
                "Async Capable" => name.prefix += if map.next_value()? { "Async " } else { "" },
                "Function Name" | "Table Function Name" | "Tuplestore Name" => {
                    name.parts.insert("Function".into(), map.next_value()?);
                }
                part if NAME_PARTS.iter().any(|names| names.contains(&part)) => {
                    name.parts.insert(key.into(), map.next_value()?);
                }
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
                _ => {
                    let text: &RawValue = map.next_value()?;
                    node.parameters.extend(parameters_in(text.get()).map(String::from));
                }
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
const NAME_PARTS: [&[&str]; 2] = [
    &["Relation Name", "Schema", "Alias", "Index Name", "Scan Direction", "Join Type", "Strategy", "Partial Mode"],
    &["Operation", "Command", "Custom Plan Provider"],
];

/// The properties that only the node's name needs. JSON has them apart from each other.
#[derive(Default)]
struct NameParts {
    parts: BTreeMap<String, String>,
    prefix: String,
}

impl NameParts {
    fn get(&self, key: &str) -> Option<&str> {
        self.parts.get(key).map(String::as_str)
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

    /// Returns the number of plans and the texts.
    fn contents(value: &str) -> (usize, Vec<String>) {
        let mut plans = 0;
        let texts = each(value, "JSON", &mut |plan, _| plans += usize::from(plan.is_ok()));
        (plans, texts.into_iter().collect())
    }

    #[test]
    fn plans_are_found_in_lists_and_rows() {
        const PLAN: &str = r#"{"Plan": {"Node Type": "Result"}}"#;
        for value in [
            PLAN.to_string(),
            format!("[{PLAN}]"),
            format!(r#"[{{"QUERY PLAN": [{PLAN}]}}]"#),
            format!("[[[{PLAN}]]]"),
            format!(r#"{{"message": {PLAN}}}"#),
        ] {
            assert_eq!(contents(&value), (1, vec![]), "{value}");
        }
        let rows = r#"[{"QUERY PLAN": "A (actual rows=1 loops=1)"}, {"QUERY PLAN": "  ->  B"}, {"statement": "C"}]"#;
        assert_eq!(contents(rows), (0, vec!["A (actual rows=1 loops=1)\n  ->  B\n".into()]));
        assert_eq!(contents(r#"[0, "Plan", null, {"Plans": 1}]"#), (0, vec![]));
        assert_eq!(contents(&format!("[{PLAN}, {PLAN}]")).0, 2);
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
}
