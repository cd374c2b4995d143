//! Properties that hold for any plan and any text.

use super::last_usable_plan;
use super::published::{estimate, last_report};
use crate::plan::tests::generated::{check_self_times, tree, with_consistent_times};
use crate::plan::{Explained, Inputs, Node, Plan, ServerClock, each_plan, writer};
use crate::report::{ExplainReport, PlanFormat, Range, WORK_ERROR};
use proptest::prelude::*;
use serde_json::{Value, json};

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
    for child in &node.children {
        write_text(child, inner, out);
    }
}

/// Returns the tree in the layout of explain.c, with an Execution Time.
pub fn text_of(root: &Node) -> String {
    let mut text = String::new();
    write_text(root, 0, &mut text);
    text + &format!("Execution Time: {:.3} ms\n", root.total_ms.unwrap_or(0.0) + 0.1)
}

/// Returns the plan that the text shows.
fn plan_of(text: &str) -> Plan {
    Plan::new(last_usable_plan(text).unwrap())
}

/// Returns the plan with corrected times and its report, or `None` if the calls would take longer than the plan.
fn corrected(plan: &str, format: PlanFormat, read_ns: f64) -> Option<(ExplainReport, String)> {
    let clock =
        |_: &Explained| Ok(ServerClock { read_ns, timed_call_ns: None, system_read_ns: None, cpus: None, note: None });
    let inputs = Inputs { clock: Some(&clock), plain_ms: None, document: Some(format) };
    let report = last_report(plan, inputs).ok()?;
    let other = if format == PlanFormat::Text { PlanFormat::Json } else { PlanFormat::Text };
    assert!(writer::plan(&report, other, "").unwrap_err().what.contains("does not convert plans"));
    let corrected = writer::plan(&report, format, "").unwrap();
    Some((report, corrected))
}

/// Returns the tree as JSON, with the properties that the text shows, too.
fn node_json(node: &Node) -> Value {
    let mut json = json!({"Node Type": node.kind, "Startup Cost": 0.0, "Total Cost": 1.0, "Plan Rows": 1, "Plan Width": 1,
        "Actual Startup Time": 0.0, "Actual Total Time": node.total_ms, "Actual Rows": node.rows.map(|rows| rows.per_loop),
        "Actual Loops": node.loops, "Filter": "((j -> 'a') = '(actual time=1.000..2.000 rows=1 loops=1)')"});
    for (key, text) in [("Subplan Name", &node.subplan), ("CTE Name", &node.cte)] {
        if let Some(text) = text {
            json[key] = text.clone().into();
        }
    }
    json["Workers"] = json!([{"Worker Number": 0, "Actual Startup Time": 0.0, "Actual Total Time": 5.0, "Actual Rows": 3, "Actual Loops": 1}]);
    if !node.children.is_empty() {
        json["Plans"] = node.children.iter().map(node_json).collect();
    }
    json
}

/// Returns EXPLAIN's JSON for a tree.
pub fn json_of(root: &Node) -> String {
    let execution_ms = (root.total_ms.unwrap_or(0.0) + 0.1) * 1000.0;
    json!([{"Plan": node_json(root), "Execution Time": execution_ms.round() / 1000.0}]).to_string()
}

/// Returns a node without its times and its name. A name from JSON has quotation marks only where they are necessary.
fn without_name(node: &Node) -> Node {
    Node { name: String::new(), total_ms: None, ..node.clone() }
}

proptest! {
    #[test]
    fn a_tree_written_as_text_reads_back(root in tree()) {
        let mut text = String::new();
        write_text(&root, 0, &mut text);
        text += "Planning Time: 0.100 ms\nTrigger x on t: time=0.001 calls=3\nExecution Time: 12.345 ms\n";
        let mut all = Vec::new();
        each_plan(&text, false, &mut |plan| all.push(plan));
        prop_assert_eq!(all.len(), 1, "{}", text);
        let read = all.remove(0).unwrap();
        prop_assert_eq!(&read.root, &root, "{}", text);
        prop_assert_eq!((read.execution_ms, read.other_calls()), (Some(12.345), 3.0));
    }

    #[test]
    fn plans_with_corrected_times_show_the_figures_of_the_report(
        root in tree().prop_map(with_consistent_times),
        read in 0.1..500.0f64,
    ) {
        const ROUNDING: f64 = 0.000_500_001;
        for (format, plan) in [(PlanFormat::Text, text_of(&root)), (PlanFormat::Json, json_of(&root))] {
            let original = plan_of(&plan).nodes;
            let Some((report, plan)) = corrected(&plan, format, read) else { continue };
            let mut all = Vec::new();
            each_plan(&plan, false, &mut |plan| all.push(plan));
            prop_assert_eq!(all.len(), 1, "{}", plan);
            let read = all.remove(0).unwrap();
            prop_assert!((read.execution_ms.unwrap() - report.corrected_ms.estimate).abs() < ROUNDING, "{}", plan);
            prop_assert!(read.time_correction.is_some());
            // A corrected plan is not corrected once more.
            prop_assert!(last_usable_plan(&plan).is_err());
            let nodes = Plan::new(read).nodes;
            prop_assert_eq!(nodes.len(), report.nodes.len());
            for ((node, original), expected) in nodes.iter().zip(&original).zip(&report.nodes) {
                prop_assert_eq!(without_name(&node.printed), without_name(&original.printed), "{}", plan);
                let loops = node.printed.loops.unwrap() / node.processes;
                let per_loop = if loops > 0.0 { expected.corrected_ms.estimate / loops } else { 0.0 };
                let shown = node.printed.total_ms.unwrap();
                prop_assert!((shown - per_loop).abs() < ROUNDING, "{} {}", per_loop, plan);
            }
        }
    }

    #[test]
    fn bounds_of_any_plan_are_ordered(root in tree().prop_map(with_consistent_times), read in 0.1..5000.0f64) {
        let text = text_of(&root);
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
    fn self_times_of_any_plan_add_up(root in tree().prop_map(with_consistent_times), read in prop::option::of(0.1..5000.0f64), plain in 0.02..1.0f64) {
        let text = text_of(&root);
        let plain_ms = (read.is_none() || plain > 0.5).then_some(plain * root.total_ms.unwrap_or(0.0));
        let Ok(report) = estimate(read, plain_ms, &text) else { return Ok(()) };
        check_self_times(&report.nodes, &plan_of(&text), report.reported_ms, report.corrected_ms)?;
    }

    #[test]
    fn a_plain_time_and_a_read_cost_agree_or_the_report_says_that_they_contradict(
        root in tree().prop_map(with_consistent_times),
        read in 0.1..5000.0f64,
        plain in 0.02..1.05f64,
        planning in prop::option::of(0.0..0.5f64),
    ) {
        let plain_ms = plain * root.total_ms.unwrap_or(0.0);
        let planning = planning.map_or(String::new(), |part| format!("Planning Time: {:.3} ms\n", part * plain_ms));
        let text = text_of(&root) + &planning;
        let (Ok(by_read), Ok(by_plain)) = (estimate(Some(read), None, &text), estimate(None, Some(plain_ms), &text)) else {
            prop_assert!(estimate(Some(read), Some(plain_ms), &text).is_err());
            return Ok(());
        };
        let report = estimate(Some(read), Some(plain_ms), &text).unwrap();
        let screen = crate::document::text::piped(&crate::document::explain::document(&report)).split_whitespace().collect::<Vec<_>>().join(" ");
        let capture = report.capture.as_ref().unwrap();
        // If both contradict each other, the interval covers both, and the screen says so.
        let (corrected, given, expected) = (report.corrected_ms, by_plain.corrected_ms, by_read.corrected_ms);
        if by_plain.unexplained_share > 0.0 {
            // No clock is that slow, and neither is this one.
            prop_assert!(report.unexplained_share + WORK_ERROR >= by_plain.unexplained_share);
            return Ok(());
        }
        // The calls cannot cost more than they do without the given time.
        let unexplained_ms = report.unexplained_share * report.reported_ms;
        let is_too_long = given.estimate < expected.low;
        prop_assert!((unexplained_ms - (expected.low - given.estimate).max(0.0)).abs() < 1e-6);
        prop_assert_eq!(corrected.estimate, if is_too_long { expected.estimate } else { given.estimate });
        let is_contradiction = is_too_long || given.low > expected.high;
        prop_assert_eq!(capture.inputs_contradict, is_contradiction);
        prop_assert_eq!(screen.contains("contradicts the expected cost of the calls: the interval covers both"), is_contradiction, "{}", screen);
        match is_contradiction {
            true => prop_assert!(corrected.low <= given.low.min(expected.low) && corrected.high >= given.high.max(expected.high)),
            false => prop_assert_eq!(corrected, given),
        }
        let overhead_ms = (report.reported_ms - corrected.estimate).max(0.0);
        let clock_ms = report.clock_share * report.reported_ms;
        prop_assert!(clock_ms <= overhead_ms + 1e-6, "{} {}", clock_ms, overhead_ms);
        prop_assert!(clock_ms + unexplained_ms <= report.reported_ms - given.estimate + 1e-6, "{} {}", clock_ms, unexplained_ms);
        let clock = capture.clock_share;
        prop_assert!(clock.low <= report.clock_share && report.clock_share <= clock.high, "{:?} {}", clock, report.clock_share);
        let calls = plan_of(&text).calls_per_process().estimate.max(1.0);
        // The columns: half of the overhead of the root's own calls does not fall into its time.
        let root = &report.nodes[0];
        let of_root_ms = root.calls / calls * overhead_ms;
        prop_assert!(root.clock_share * root.reported_ms <= report.clock_share * report.reported_ms + 1e-6, "{:?}", root);
        prop_assert!(root.corrected_ms.estimate <= corrected.estimate + of_root_ms + root.rounded_ms, "{:?} {:?}", root, corrected);
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
