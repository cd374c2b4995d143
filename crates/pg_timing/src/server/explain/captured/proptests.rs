//! Properties that hold for any plan and any text.

use super::tests::estimate;
use super::*;
use crate::server::explain::plan::{Node, Rows};
use proptest::prelude::*;

/// Generates plans with the properties that both the text and the JSON format show.
fn tree() -> impl Strategy<Value = Node> {
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
fn with_consistent_times(mut node: Node) -> Node {
    node.plans = node.plans.into_iter().map(with_consistent_times).collect();
    let all_loops_ms = |node: &Node| node.total_ms.unwrap_or(0.0) * node.loops.unwrap_or(0.0);
    let inputs: f64 = node.plans.iter().map(all_loops_ms).sum();
    node.loops = node.loops.map(|loops| loops.max(1.0));
    node.total_ms = Some((all_loops_ms(&node) + inputs) / node.loops.unwrap_or(1.0));
    if node.inputs().count() < crate::server::explain::plan::validate::least_inputs(&node.kind) {
        (node.kind, node.name) = ("Append".into(), "Append".into());
    }
    node
}

/// Writes the tree in the layout of PostgreSQL's explain.c.
fn write_text(node: &Node, column: usize, out: &mut String) {
    let mut column = column;
    if let Some(label) = &node.subplan {
        *out += &format!("{}{label}\n", " ".repeat(column));
        column += 2;
    }
    let arrow = if out.is_empty() { "" } else { "->  " };
    *out += &format!("{}{arrow}{}", " ".repeat(column), node.name);
    *out += "  (cost=0.00..1.00 rows=1 width=1) ";
    match node.loops.zip(node.rows).zip(node.total_ms) {
        Some(((loops, rows), ms)) if loops > 0.0 => {
            *out += &format!("(actual time=0.000..{ms:.3} rows={:.2} loops={loops})\n", rows.per_loop);
        }
        _ => *out += "(never executed)\n",
    }
    let inner = column + if arrow.is_empty() { 2 } else { 6 };
    let property = " ".repeat(inner);
    if node.kind == "Gather" {
        *out += &format!("{property}Workers Launched: 2\n");
    }
    *out += &format!("{property}Filter: ((j -> 'a') = '(actual time=1.000..2.000 rows=1 loops=1)')\n");
    *out += &format!("{property}Worker 0:  actual time=0.000..5.000 rows=3.00 loops=1\n");
    for plan in &node.plans {
        write_text(plan, inner, out);
    }
}

fn without_relationships(node: &Node) -> Node {
    // The relationships of a generated tree mean nothing.
    Node { relationship: None, plans: node.plans.iter().map(without_relationships).collect(), ..node.clone() }
}

proptest! {
    #[test]
    fn a_tree_written_as_text_reads_back(root in tree()) {
        let mut text = String::new();
        write_text(&root, 0, &mut text);
        text += "Planning Time: 0.100 ms\nTrigger x on t: time=0.001 calls=3\nExecution Time: 12.345 ms\n";
        let mut all = Vec::new();
        extract::each_plan(&text, &mut |plan| all.push(plan));
        prop_assert_eq!(all.len(), 1, "{}", text);
        let read = all.remove(0).unwrap();
        prop_assert_eq!(without_relationships(&read.plan), root, "{}", text);
        prop_assert_eq!((read.execution_ms, read.other_calls()), (Some(12.345), 3.0));
    }

    #[test]
    fn bounds_of_any_plan_are_ordered(root in tree().prop_map(with_consistent_times), read in 0.1..5000.0f64) {
        let mut text = String::new();
        write_text(&root, 0, &mut text);
        text += &format!("Execution Time: {:.3} ms\n", root.total_ms.unwrap_or(0.0) + 0.1);
        let report = match estimate(Some(read), None, &text) {
            // The only possible error: the calls would take longer than the plan.
            Err(error) => { prop_assert!(error.what.contains("take at least"), "{}\n{}", error.what, text); return Ok(()) }
            Ok(report) => report,
        };
        let ordered = |range: Range| range.low >= 0.0 && range.low <= range.estimate && range.estimate <= range.high;
        prop_assert!(ordered(report.corrected_ms) && report.corrected_ms.high <= report.reported_ms);
        prop_assert!(ordered(report.capture.unwrap().clock_share) && report.clock_share <= 1.0);
        for node in &report.nodes {
            prop_assert!(ordered(node.corrected_ms) && node.calls.is_finite(), "{:?}", node);
        }
    }

    #[test]
    fn damaged_plans_cause_no_panic(root in tree(), cut in any::<prop::sample::Index>(), junk in "[ -~\n|+>\"{}\\[\\]]{0,30}", at in any::<prop::sample::Index>()) {
        let mut text = String::new();
        write_text(&root, 0, &mut text);
        text += "Execution Time: 12.345 ms\n";
        let at = at.index(text.len());
        text.insert_str(at, &junk);
        text.truncate(cut.index(text.len()));
        _ = estimate(Some(20.0), Some(1.0), &text);
    }

    #[test]
    fn any_text_causes_no_panic(text in "(\\PC|\n|->  |\\(actual time=0..1 rows=1 loops=9\\)|duration: 1 ms  plan:|\\{\"Plan\": |\\[){0,40}") {
        _ = estimate(Some(20.0), None, &text);
    }
}
