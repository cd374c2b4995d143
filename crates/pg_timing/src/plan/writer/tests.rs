use super::*;
use crate::report::{LiveRuns, Range};

/// Returns a node whose loops take `ms` together, in each process.
fn node(kind: &str, loops: f64, ms: f64) -> ExplainedNode {
    let corrected_ms = Range { low: 0.0, estimate: ms, high: 99.0 };
    ExplainedNode { kind: kind.into(), loops, corrected_ms, ..ExplainedNode::default() }
}

fn report(document: PlanSource) -> ExplainReport {
    ExplainReport {
        version: "1.2.3".into(),
        reported_ms: 20.0,
        corrected_ms: Range { low: 10.0, estimate: 12.0, high: 15.0 },
        // The scan ran three times in two processes.
        nodes: vec![node("Gather", 1.0, 8.0), node("Seq Scan", 1.5, 6.0), node("Result", 0.0, 0.0)],
        document: Some(document),
        ..ExplainReport::default()
    }
}

const JSON: &str = r#"{"Plan": {"Node Type": "Gather", "Actual Startup Time": 4.0, "Actual Total Time": 16.0, "Actual Rows": 5, "Actual Loops": 1,
    "Plans": [
        {"Node Type": "Seq Scan", "Subplan Name": "CTE \u001b[8m", "Actual Startup Time": 2.0, "Actual Total Time": 10.0, "Actual Rows": 5, "Actual Loops": 3, "Filter": "a\nb",
            "Workers": [{"Worker Number": 0, "Actual Startup Time": 5.0, "Actual Total Time": 12.5, "Actual Rows": 5, "Actual Loops": 1}]},
        {"Node Type": "Result", "Actual Startup Time": 0.0, "Actual Total Time": 0.0, "Actual Rows": 0, "Actual Loops": 0}]},
    "Planning Time": 0.5, "Execution Time": 20.0, "Last": 1}"#;

fn from_json() -> ExplainReport {
    report(PlanSource::Json(JSON.into()))
}

const TEXT: &str = "\
Gather (actual time=4.000..16.000 rows=5 loops=1)
  CTE \x1b[8m
    ->  Seq Scan on \"(actual time=1..2 )\" (actual time=2.000..10.000 rows=5 loops=3)
          Filter: (a = '(actual time=2.000..10.000 rows=5 loops=3)')
          Worker 0:  actual time=5.000..12.500 rows=5 loops=1
  ->  Result (never executed)
Planning Time: 0.500 ms
Execution Time: 20.000 ms
(8 rows)
";

fn from_text() -> ExplainReport {
    report(PlanSource::Text(TEXT.into()))
}

#[test]
fn times_in_json_are_those_of_the_report() {
    insta::assert_snapshot!(plan(&from_json(), PlanFormat::Json, "too short").unwrap());
}

#[test]
fn lines_of_a_text_are_kept_with_other_times() {
    insta::assert_snapshot!(plan(&from_text(), PlanFormat::Text, "too short").unwrap());
}

#[test]
fn a_plan_without_figures_is_an_error() {
    let runs = LiveRuns { plain_ms: 0.1, round_trip_ms: 0.1, ..LiveRuns::default() };
    let too_short = ExplainReport { runs: Some(runs), ..from_json() };
    for error in [
        plan(&too_short, PlanFormat::Text, "too short").unwrap_err(),
        plan(&too_short, PlanFormat::Json, "too short").unwrap_err(),
    ] {
        assert!(error.what.contains("too short"), "{}", error.what);
    }
}

#[test]
fn a_plan_is_printed_in_the_format_that_was_read() {
    assert!(plan(&from_text(), PlanFormat::Json, "too short").unwrap_err().hint.contains("--format plan-text"));
    assert!(plan(&from_json(), PlanFormat::Text, "too short").unwrap_err().hint.contains("--format plan-json"));
    assert!(plan(&ExplainReport::default(), PlanFormat::Text, "too short").is_err());
}

/// The last run has fewer or more nodes than the reported runs, or another node.
#[test]
fn another_plan_gets_no_times() {
    let scan = || node("Seq Scan", 1.5, 6.0);
    let fewer = || vec![node("Gather", 1.0, 8.0), scan()];
    let others = [vec![], fewer(), [fewer(), vec![scan()]].concat(), [from_json().nodes, vec![scan()]].concat()];
    for nodes in others {
        let [as_text, as_json] =
            [from_text(), from_json()].map(|report| ExplainReport { nodes: nodes.clone(), ..report });
        for result in [plan(&as_text, PlanFormat::Text, "too short"), plan(&as_json, PlanFormat::Json, "too short")] {
            assert!(result.is_err_and(|error| error.what.contains("differs")), "{nodes:?}");
        }
    }
}
