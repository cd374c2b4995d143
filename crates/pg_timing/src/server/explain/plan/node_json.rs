//! Reads a plan node from EXPLAIN's JSON. Properties that pg_timing does not need are skipped and take no memory.

use super::explained::Node;
use super::name::NameParts;
use super::parameters;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::{Formatter, Result as FmtResult};

/// A join of ten tables with thousands of partitions each has fewer nodes. A node takes about half a kilobyte of
/// memory.
pub const MAX_NODES: usize = 100_000;

/// The parser's message about a plan with more nodes. It is compared with the text of an error.
pub const TOO_MANY_NODES: &str = "too many plan nodes";

impl<'de> serde::Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        NodeSeed { left: &Cell::new(MAX_NODES) }.deserialize(deserializer)
    }
}

/// Reads a node and the nodes below it.
#[derive(Clone, Copy)]
struct NodeSeed<'a> {
    /// how many more nodes the plan may have
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom(TOO_MANY_NODES)),
        }
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
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
                "Parent Relationship" => node.relationship = map.next_value()?,
                "Subplan Name" => node.subplan = map.next_value()?,
                "CTE Name" => node.cte = map.next_value()?,
                "Relation Name" => node.relation = map.next_value()?,
                "Schema" => name.schema = map.next_value()?,
                "Function Name" | "Table Function Name" | "Tuplestore Name" => name.function = map.next_value()?,
                "Alias" => name.alias = map.next_value()?,
                "Parallel Aware" => name.parallel_aware = map.next_value()?,
                "Async Capable" => name.async_capable = map.next_value()?,
                "Partial Mode" => name.partial_mode = map.next_value()?,
                "Custom Plan Provider" => name.provider = map.next_value()?,
                "Command" => name.command = map.next_value()?,
                "Scan Direction" => name.direction = map.next_value()?,
                "Index Name" => node.index = map.next_value()?,
                "Join Type" => node.join = map.next_value()?,
                "Operation" => node.operation = map.next_value()?,
                "Strategy" => node.strategy = map.next_value()?,
                "Inner Unique" => node.inner_unique = map.next_value()?,
                "Actual Total Time" => node.total_ms = map.next_value()?,
                "Actual Rows" => node.rows = map.next_value()?,
                "Actual Loops" => node.loops = map.next_value()?,
                "Shared Hit Blocks" => node.buffers = map.next_value()?,
                "I/O Read Time" | "Shared I/O Read Time" => node.io_ms = map.next_value()?,
                "Timing" => node.timing = map.next_value()?,
                "Plans" => node.plans = map.next_value_seed(PlansSeed(self))?,
                _ => map.next_value_seed(ParametersSeed(&mut node.parameters))?,
            }
        }
        node.name = name.name_of(&node);
        Ok(node)
    }
}

struct PlansSeed<'a>(NodeSeed<'a>);

impl<'de> DeserializeSeed<'de> for PlansSeed<'_> {
    type Value = Vec<Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Node>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for PlansSeed<'_> {
    type Value = Vec<Node>;

    fn expecting(&self, f: &mut Formatter) -> FmtResult {
        f.write_str("a list of plan nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Node>, A::Error> {
        let mut plans = Vec::new();
        while let Some(node) = list.next_element_seed(self.0)? {
            plans.push(node);
        }
        Ok(plans)
    }
}

/// Reads any property. Collects the parameters in its text, or in its list of texts.
struct ParametersSeed<'a>(&'a mut BTreeSet<String>);

impl<'de> DeserializeSeed<'de> for ParametersSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParametersSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> FmtResult {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.extend(parameters::in_text(text).map(String::from));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(ParametersSeed(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_properties_are_searched_for_parameters() {
        let node: Node = serde_json::from_str(
            r#"{"Node Type": "Result", "Filter": "(a > $1)", "Output": ["b", "(InitPlan 2).col1", 7, null],
                "Workers": [{"Name": "$3"}], "Group": {"Key": "$4"}, "Plan Rows": 5, "Cost": -1.5, "Async": true}"#,
        )
        .unwrap();
        assert_eq!(Vec::from_iter(&node.parameters), ["$1", "InitPlan 2"]);
    }

    #[test]
    fn the_number_of_nodes_is_limited() {
        let plan = |nodes: usize| format!(r#"{{"Plans": [{}]}}"#, vec!["{}"; nodes - 1].join(","));
        let read = |nodes: usize| serde_json::from_str::<Node>(&plan(nodes)).map(|node| node.plans.len());
        assert_eq!(read(MAX_NODES).unwrap(), MAX_NODES - 1);
        assert!(read(MAX_NODES + 1).unwrap_err().to_string().contains(TOO_MANY_NODES));
    }
}
