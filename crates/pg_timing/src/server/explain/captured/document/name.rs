//! The properties that a node's line shows.

use super::element;
use super::property::read_figures;
use crate::plan_format::Properties;
use crate::plan_format::keys::SUBPLAN;
use crate::plan_format::lines::COSTS;
use crate::server::explain::plan::Node;
use serde_json::Value;

/// Returns the properties of a node in the order of the server's JSON. `line` is its line in the text.
pub fn properties(node: &Node, line: &str) -> Properties {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let head = Head::of(&node.name);
    let is_foreign = node.kind == "Foreign Scan";
    let in_order = [
        ("Node Type", Some(node.kind.as_str().into())),
        ("Strategy", text(&node.strategy)),
        ("Partial Mode", (node.kind == "Aggregate").then(|| head.partial_mode.into())),
        ("Operation", text(&node.operation).or(is_foreign.then(|| "Select".into()))),
        ("Parent Relationship", text(&node.relationship)),
        (SUBPLAN, text(&node.subplan)),
        ("Custom Plan Provider", head.provider.map(Value::from)),
        ("Parallel Aware", Some(head.parallel_aware.into())),
        ("Async Capable", Some(head.async_capable.into())),
        ("Scan Direction", head.direction(&node.kind).map(Value::from)),
        ("Index Name", text(&node.index)),
        ("Join Type", text(&node.join)),
        ("Command", head.command.map(Value::from)),
    ];
    let known = in_order.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?)));
    let mut properties: Properties = known.collect();
    properties.extend(target(node));
    if let Some(costs) = line.rfind("(cost=").and_then(|at| Some(&line[at..=at + line[at..].find(')')?])) {
        properties.extend(COSTS.read(costs).unwrap_or_default());
    }
    match line.rfind("(actual ") {
        Some(at) => read_figures(line[at..].trim_start_matches('(').trim_end_matches(')'), &mut properties),
        None => read_figures("actual time=0.000..0.000 rows=0 loops=0", &mut properties),
    }
    properties
}

/// The words of a node's name before its objects.
struct Head<'a> {
    parallel_aware: bool,
    async_capable: bool,
    partial_mode: &'static str,
    provider: Option<&'a str>,
    command: Option<&'a str>,
    backward: bool,
}

impl<'a> Head<'a> {
    fn of(name: &'a str) -> Head<'a> {
        let head = name.split_once(" on ").map_or(name, |(head, _)| head);
        let after_parallel = head.strip_prefix("Parallel ");
        let rest = after_parallel.unwrap_or(head);
        let after_async = rest.strip_prefix("Async ");
        let rest = after_async.unwrap_or(rest);
        Head {
            parallel_aware: after_parallel.is_some(),
            async_capable: after_async.is_some(),
            partial_mode: ["Partial", "Finalize"].into_iter().find(|mode| rest.starts_with(mode)).unwrap_or("Simple"),
            provider: rest.strip_prefix("Custom Scan (").and_then(|rest| rest.strip_suffix(')')),
            command: rest.strip_prefix("HashSetOp ").or(rest.strip_prefix("SetOp ")),
            backward: head.split(" using ").next().is_some_and(|scan| scan.ends_with(" Backward")),
        }
    }

    fn direction(&self, kind: &str) -> Option<&'static str> {
        let is_index_scan = matches!(kind, "Index Scan" | "Index Only Scan");
        is_index_scan.then_some(if self.backward { "Backward" } else { "Forward" })
    }
}

/// Returns the table, function or CTE, with its schema and its alias.
fn target(node: &Node) -> Properties {
    let Some((_, target)) = node.name.split_once(" on ") else { return Properties::new() };
    let key = match node.kind.as_str() {
        "Bitmap Index Scan" => return Properties::new(),
        // These have only an alias.
        "Values Scan" | "Subquery Scan" => None,
        "CTE Scan" | "WorkTable Scan" => Some("CTE Name"),
        "Function Scan" => Some("Function Name"),
        "Table Function Scan" => Some("Table Function Name"),
        "Named Tuplestore Scan" => Some("Tuplestore Name"),
        _ => Some("Relation Name"),
    };
    element::names(target, key)
}
