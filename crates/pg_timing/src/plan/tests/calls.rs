//! The calls of nodes, and the processes that make them.

use crate::plan::Plan;
use crate::plan::tests::plan_of_json;

fn plan(json: &str) -> Plan {
    plan_of_json(json, 0.0)
}

#[test]
fn calls_and_times_are_per_process() {
    let plan = plan(
        r#"{"Plan": {"Node Type": "Gather", "Workers Launched": 2, "Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 1,
            "Plans": [{"Node Type": "Seq Scan", "Relation Name": "t", "Alias": "t", "Actual Total Time": 8.0, "Actual Rows": 100, "Actual Loops": 3}]}}"#,
    );
    let [gather, scan] = plan.nodes.as_slice() else { panic!("{plan:?}") };
    assert_eq!((gather.calls.estimate, scan.calls.estimate, scan.reported_ms), (301.0, 101.0, Some(8.0)));
    // The upper bound: two workers made all calls, and rounding hides half a row per loop.
    assert_eq!((scan.calls.low, scan.calls.high), (99.5, 101.5 * 3.0 / 2.0));
    assert_eq!((scan.path.as_str(), scan.printed.title().as_str()), ("0.0", "Seq Scan on t"));
    assert_eq!((plan.calls_per_process().estimate, plan.all_calls().estimate), (402.0, 604.0));
    assert_eq!(plan.concurrent_processes(), 604.0 / 402.0);
}

#[test]
fn processes_below_a_gather_follow_from_loops() {
    let run = |gather: &str, input_loops: f64, workers: f64| {
        let plan = plan(&format!(
            r#"{{"Plan": {{"Node Type": "Gather", "Workers Launched": {workers}, {gather}, "Plans": [
                {{"Node Type": "Seq Scan", "Actual Total Time": 8.0, "Actual Rows": 100, "Actual Loops": {input_loops}}},
                {{"Node Type": "Result", "Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1",
                  "Actual Total Time": 1.0, "Actual Rows": 1, "Actual Loops": 9}}]}}}}"#
        ));
        (plan.nodes[1].processes, plan.nodes[1].reported_ms.unwrap(), plan.nodes[2].processes)
    };
    let one_loop = r#""Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 1"#;
    assert_eq!(run(one_loop, 3.0, 2.0), (3.0, 8.0, 1.0));
    // The leader did not take part.
    assert_eq!(run(one_loop, 2.0, 2.0), (2.0, 8.0, 1.0));
    // The last loop got no workers.
    let ten_loops = r#""Actual Total Time": 10.0, "Actual Rows": 300, "Actual Loops": 10"#;
    assert_eq!(run(ten_loops, 28.0, 0.0), (2.8, 80.0, 1.0));
}

#[test]
fn a_unique_inner_side_is_called_once_per_loop() {
    let plan = plan(
        r#"{"Plan": {"Node Type": "Nested Loop", "Inner Unique": true, "Join Type": "Inner", "Actual Rows": 1000, "Actual Loops": 1, "Plans": [
            {"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Rows": 1000, "Actual Loops": 1},
            {"Node Type": "Index Scan", "Parent Relationship": "Inner", "Actual Rows": 1, "Actual Loops": 1000}]}}"#,
    );
    assert_eq!(plan.nodes.iter().map(|node| node.calls.estimate).collect::<Vec<_>>(), [1001.0, 1001.0, 1000.0]);
}

#[test]
fn hash_and_bitmap_nodes_are_called_once_per_loop() {
    for kind in ["Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr"] {
        let plan = plan(&format!(
            r#"{{"Plan": {{"Node Type": "Limit", "Actual Rows": 1, "Actual Loops": 1, "Plans": [
                {{"Node Type": "{kind}", "Actual Rows": 500, "Actual Loops": 3}}]}}}}"#
        ));
        let calls = plan.nodes[1].calls;
        assert_eq!((calls.low, calls.estimate, calls.high), (3.0, 3.0, 3.0), "{kind}");
    }
}

#[test]
fn a_direct_foreign_modification_is_called_once_unless_it_returns_rows() {
    let calls = |returned: u32| {
        let plan = plan(&format!(
            r#"{{"Plan": {{"Node Type": "ModifyTable", "Actual Rows": {returned}, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Foreign Scan", "Operation": "Update", "Actual Rows": 50, "Actual Loops": 1}}]}}}}"#
        ));
        let calls = plan.nodes[1].calls;
        (calls.low, calls.estimate, calls.high)
    };
    assert_eq!(calls(0), (1.0, 1.0, 51.5));
    assert_eq!(calls(50), (1.0, 51.5, 51.5));
}

#[test]
fn triggers_and_serialized_rows_count_as_calls() {
    let plan = plan(
        r#"{"Plan": {"Node Type": "Result", "Actual Rows": 5, "Actual Loops": 1},
            "Triggers": [{"Calls": 3}], "Serialization": {"Time": 0.1}}"#,
    );
    assert_eq!(plan.other_calls, 8.0);
    assert_eq!(plan.calls_per_process().estimate, 14.0);
}
