//! Random plans for property tests.

use super::validate::{least_inputs, most_inputs};
use super::{Node, Plan, Rows};
use crate::report::{ExplainedNode, Range};
use proptest::prelude::*;

/// Generates plans with the properties that both the text and the JSON format show.
pub fn tree() -> impl Strategy<Value = Node> {
    let kinds =
        ["Seq Scan", "Sort", "Hash", "Nested Loop", "Gather", "Append", "CTE Scan", "Index Only Scan", "Aggregate"];
    let labels = [None, Some("InitPlan 1 (returns $0)"), Some("CTE c"), Some("SubPlan any_1")];
    let names = "[a-z]([a-z \".>-]{0,8}[a-z])?";
    let node = (0..kinds.len(), 0..labels.len(), names, names, 0..2000u32, 0..4000u32, 0..30_000_000u32);
    let node = node.prop_map(move |(kind, label, relation, alias, loops, rows, us)| {
        let kind = kinds[kind].to_string();
        let scan = kind.ends_with("Scan");
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let using = if kind.starts_with("Index") { " using i" } else { "" };
        let on = if scan { format!(" on public.{} {}", quoted(&relation), quoted(&alias)) } else { String::new() };
        Node {
            name: format!("{kind}{using}{on}"),
            relation: (scan && kind != "CTE Scan").then(|| relation.clone()),
            cte: (kind == "CTE Scan").then_some(relation),
            index: kind.starts_with("Index").then(|| "i".into()),
            join: (kind == "Nested Loop").then(|| "Inner".into()),
            strategy: (kind == "Aggregate").then(|| "Plain".into()),
            subplan: labels[label].map(str::to_string),
            loops: Some(loops.into()),
            rows: Some(Rows::new(if loops == 0 { 0.0 } else { f64::from(rows) / 100.0 }, loops > 0)),
            total_ms: Some(if loops == 0 { 0.0 } else { f64::from(us) / 1000.0 }),
            kind,
            ..Node::default()
        }
    });
    let tree = node.clone().prop_recursive(5, 30, 4, move |below| {
        (node.clone(), prop::collection::vec(below, 0..4)).prop_map(|(node, plans)| Node { plans, ..node })
    });
    tree.prop_map(|mut root| {
        // The root is not a subplan, and it is executed.
        (root.subplan, root.loops, root.rows, root.total_ms) =
            (None, Some(1.0), Some(Rows::new(7.25, true)), Some(9.5));
        root
    })
}

/// Returns the tree with times that include those of the inputs, for a single process.
pub fn with_consistent_times(mut node: Node) -> Node {
    node.plans = node.plans.into_iter().map(with_consistent_times).collect();
    let all_loops_ms = |node: &Node| node.total_ms.unwrap_or(0.0) * node.loops.unwrap_or(0.0);
    let inputs: f64 = node.plans.iter().map(all_loops_ms).sum();
    node.loops = node.loops.map(|loops| loops.max(1.0));
    node.total_ms = Some((all_loops_ms(&node) + inputs) / node.loops.unwrap_or(1.0));
    if !(least_inputs(&node.kind)..=most_inputs(&node.kind)).contains(&node.inputs().count()) {
        (node.kind, node.name) = ("Append".into(), "Append".into());
    }
    if node.kind == "Append" {
        // Each of its rows comes from an input.
        let all_rows = |node: &Node| node.rows.map_or(0.0, |rows| rows.per_loop) * node.loops.unwrap_or(0.0);
        let rows = node.inputs().map(all_rows).fold(0.0, |sum, rows| sum + rows);
        node.rows = Some(Rows::new((rows / node.loops.unwrap_or(1.0) * 100.0).floor() / 100.0, true));
    }
    node
}

/// Checks that self times are not negative, that their sum is the root's corrected time unless one of them is cut to 0,
/// and that no node takes longer than its only caller or the statement.
pub fn check_self_times(nodes: &[ExplainedNode], plan: &Plan, statement: Range) -> Result<(), TestCaseError> {
    prop_assert_eq!(nodes.len(), plan.nodes.len());
    let rounding: f64 = nodes.iter().map(|node| node.rounded_ms).sum();
    for (node, in_plan) in nodes.iter().zip(&plan.nodes) {
        let [own, all] = [node.self_ms, node.corrected_ms];
        prop_assert!(0.0 <= own.low && own.low <= own.estimate && own.estimate <= own.high, "{:?}", node);
        prop_assert!(0.0 <= all.low && all.low <= all.estimate && all.estimate <= all.high, "{:?}", node);
        prop_assert!(all.estimate <= statement.estimate && all.high <= statement.high, "{:?} {:?}", node, statement);
        prop_assert_eq!(own.estimate, node.corrected_self_ms);
        prop_assert!(node.corrected_self_ms <= all.estimate, "{:?}", node);
        if let (Some(caller), true) = (in_plan.caller, in_plan.has_one_caller) {
            let most = nodes[caller].corrected_ms;
            prop_assert!(all.estimate <= most.estimate && all.high <= most.high, "{:?} in {:?}", node, nodes[caller]);
        }
    }
    let sum: f64 = nodes.iter().map(|node| node.corrected_self_ms).sum();
    let root_ms = nodes[0].corrected_ms.estimate;
    let tolerance = rounding + 1e-6 * root_ms;
    prop_assert!(sum >= root_ms - tolerance, "{} {} {:#?}", sum, root_ms, nodes);
    // If the inputs of a node seem to take longer than the node itself, its self time is 0, and the sum is larger.
    let is_cut = |node: &ExplainedNode| node.corrected_self_ms == 0.0;
    prop_assert!(nodes.iter().any(is_cut) || sum <= root_ms + tolerance, "{} {} {:#?}", sum, root_ms, nodes);
    Ok(())
}
