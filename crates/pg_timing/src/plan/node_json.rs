//! Reads a plan node from EXPLAIN's JSON. Properties that pg_timing does not need are skipped and take no memory.

use super::name::NameParts;
use super::parameters;
use super::tree::Node;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::{Formatter, Result as FmtResult};

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
        let mut has_kind = false;
        while let Some(key) = map.next_key::<Cow<str>>()? {
            match &*key {
                "Node Type" => {
                    (node.kind, has_kind) = (map.next_value()?, true);
                }
                "Subplan Name" => node.subplan = map.next_value()?,
                "CTE Name" => node.cte = map.next_value()?,
                "Relation Name" => name.relation = map.next_value()?,
                "Schema" => name.schema = map.next_value()?,
                "Function Name" | "Table Function Name" | "Tuplestore Name" => name.function = map.next_value()?,
                "Alias" => name.alias = map.next_value()?,
                "Parallel Aware" => name.parallel_aware = map.next_value()?,
                "Async Capable" => name.async_capable = map.next_value()?,
                "Partial Mode" => name.partial_mode = map.next_value()?,
                "Custom Plan Provider" => name.provider = map.next_value()?,
                "Command" => name.command = map.next_value()?,
                "Scan Direction" => name.direction = map.next_value()?,
                "Index Name" => name.index = map.next_value()?,
                "Join Type" => name.join = map.next_value()?,
                "Operation" => name.operation = map.next_value()?,
                "Strategy" => name.strategy = map.next_value()?,
                "Inner Unique" => node.inner_unique = map.next_value()?,
                "Actual Total Time" => node.total_ms = map.next_value()?,
                "Actual Rows" => node.rows = map.next_value()?,
                "Actual Loops" => node.loops = map.next_value()?,
                "Shared Hit Blocks" => node.has_buffers = map.next_value::<IgnoredAny>().is_ok(),
                "I/O Read Time" | "Shared I/O Read Time" => node.has_io_times = map.next_value::<IgnoredAny>().is_ok(),
                "Timing" => node.is_fast_timed = map.next_value::<IgnoredAny>().is_ok(),
                "Tasks Shown" => node.set_tasks_shown(&map.next_value::<Cow<str>>()?),
                "Plans" => node.plans = map.next_value()?,
                // A parameter has no character that JSON escapes.
                _ => {
                    let text: &RawValue = map.next_value()?;
                    node.parameters.extend(parameters::in_text(text.get()).map(String::from));
                }
            }
        }
        // An object without a kind is no node. So a text has at most as many nodes as it has kinds.
        if !has_kind {
            return Err(A::Error::missing_field("Node Type"));
        }
        node.name = name.name_of(&node);
        Ok(node)
    }
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
}
