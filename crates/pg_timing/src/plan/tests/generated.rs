//! Random plans for property tests.

use crate::plan::tree;
use crate::plan::{Node, Plan, Rows};
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
        // A CTE has no schema.
        let schema = if kind == "CTE Scan" { "" } else { "public." };
        let on = if scan { format!(" on {schema}{} {}", quoted(&relation), quoted(&alias)) } else { String::new() };
        Node {
            name: format!("{kind}{using}{on}"),
            cte: (kind == "CTE Scan").then_some(relation),
            subplan: labels[label].map(str::to_string),
            loops: Some(loops.into()),
            rows: Some(Rows::new(if loops == 0 { 0.0 } else { f64::from(rows) / 100.0 }, loops > 0)),
            total_ms: Some(if loops == 0 { 0.0 } else { f64::from(us) / 1000.0 }),
            kind,
            ..Node::default()
        }
    });
    let tree = node.clone().prop_recursive(5, 30, 4, move |below| {
        (node.clone(), prop::collection::vec(below, 0..4)).prop_map(|(node, children)| Node { children, ..node })
    });
    tree.prop_map(|mut root| {
        // The root is not a subplan, and it is executed.
        (root.subplan, root.loops, root.rows, root.total_ms) =
            (None, Some(1.0), Some(Rows::new(7.25, true)), Some(9.5));
        root
    })
}

/// Returns the child nodes that are not subplans.
fn inputs(node: &Node) -> impl Iterator<Item = &Node> {
    node.children.iter().filter(|child| child.subplan.is_none())
}

/// Returns the tree with times that include those of the inputs, for a single process.
pub fn with_consistent_times(mut node: Node) -> Node {
    node.children = node.children.into_iter().map(with_consistent_times).collect();
    let all_loops_ms = |node: &Node| node.total_ms.unwrap_or(0.0) * node.loops.unwrap_or(0.0);
    let below_ms: f64 = node.children.iter().map(all_loops_ms).sum();
    node.loops = node.loops.map(|loops| loops.max(1.0));
    node.total_ms = Some((all_loops_ms(&node) + below_ms) / node.loops.unwrap_or(1.0));
    let (least, most) = tree::inputs_of(&node.kind).unwrap_or((0, usize::MAX));
    if !(least..=most).contains(&inputs(&node).count()) {
        (node.kind, node.name) = ("Append".into(), "Append".into());
    }
    if node.kind == "Append" {
        // Each of its rows comes from an input.
        let all_rows = |node: &Node| node.rows.map_or(0.0, |rows| rows.per_loop) * node.loops.unwrap_or(0.0);
        let rows = inputs(&node).map(all_rows).fold(0.0, |sum, rows| sum + rows);
        node.rows = Some(Rows::new((rows / node.loops.unwrap_or(1.0) * 100.0).floor() / 100.0, true));
    }
    node
}

/// Checks the conservation of time: self times are not negative and add up to at most the time of the statement, with and
/// without timing. No corrected time is longer than the reported one, than that of the only caller, or than the statement.
pub fn check_self_times(
    nodes: &[ExplainedNode],
    plan: &Plan,
    reported_ms: f64,
    statement: Range,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(nodes.len(), plan.nodes.len());
    for (node, in_plan) in nodes.iter().zip(&plan.nodes) {
        let [own, all] = [node.self_ms, node.corrected_ms];
        prop_assert!(0.0 <= own.low && own.low <= own.estimate && own.estimate <= own.high, "{:?}", node);
        prop_assert!(0.0 <= all.low && all.low <= all.estimate && all.estimate <= all.high, "{:?}", node);
        prop_assert!(all.estimate <= statement.estimate && all.high <= statement.high, "{:?} {:?}", node, statement);
        prop_assert!(all.estimate <= node.reported_ms && node.corrected_self_ms <= all.estimate + 1e-9, "{:?}", node);
        prop_assert_eq!(own.estimate, node.corrected_self_ms);
        prop_assert_eq!(node.rank.is_some(), node.corrected_rank.is_some());
        if let Some(caller) = in_plan.callers.only().filter(|_| in_plan.rows_are_calls) {
            let most = nodes[caller].corrected_ms;
            prop_assert!(all.estimate <= most.estimate && all.high <= most.high, "{:?} in {:?}", node, nodes[caller]);
        }
    }
    let corrected: f64 = nodes.iter().map(|node| node.corrected_self_ms).sum();
    let reported: f64 = nodes.iter().map(|node| node.reported_self_ms).sum();
    prop_assert!(corrected <= statement.estimate * (1.0 + 1e-9), "{} {} {:#?}", corrected, statement.estimate, nodes);
    prop_assert!(reported <= reported_ms * (1.0 + 1e-9), "{} {} {:#?}", reported, reported_ms, nodes);
    // All of the root's time is the self time of a node.
    let root_ms = nodes[0].corrected_ms.estimate;
    prop_assert!(corrected >= root_ms * (1.0 - 1e-9), "{} {} {:#?}", corrected, root_ms, nodes);
    Ok(())
}
