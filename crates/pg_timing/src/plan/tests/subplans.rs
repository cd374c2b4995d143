use super::{Plan, PlanNode, plan_of_json};

fn plan(json: &str) -> Plan {
    plan_of_json(json, 0.0)
}

fn single(node: &PlanNode) -> Option<usize> {
    if let [(caller, _)] = node.callers.parts[..] { Some(caller) } else { None }
}

fn callers(json: &str) -> Vec<Option<usize>> {
    plan(json).nodes.iter().map(single).collect()
}

#[test]
fn a_cte_without_an_executed_reader_keeps_its_caller_unless_it_modifies_data() {
    let callers = callers(
        r#"{"Plan": {"Node Type": "Append", "Actual Loops": 1, "Plans": [
            {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Loops": 1},
            {"Node Type": "ModifyTable", "Parent Relationship": "InitPlan", "Subplan Name": "CTE w", "Actual Loops": 1},
            {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 0},
            {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 1}]}}"#,
    );
    assert_eq!(callers, [None, Some(4), None, Some(0), Some(0)]);
}

/// The plan does not show which rows of the CTE were computed for which reader.
#[test]
fn a_cte_is_divided_among_its_readers_by_their_times() {
    let parts = |first: f64, second: f64| {
        let nodes = plan(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Loops": 1, "Plans": [
                {{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 9.0, "Actual Loops": 1}},
                {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {first}, "Actual Loops": 1}},
                {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {second}, "Actual Loops": 1}}]}}}}"#
        ))
        .nodes;
        (nodes[1].callers.parts.clone(), nodes[1].callers.only())
    };
    assert_eq!(parts(2.0, 8.0), (vec![(2, 0.2), (3, 0.8)], None));
    assert_eq!(parts(0.0, 0.0), (vec![(2, 0.5), (3, 0.5)], None));
}

#[test]
fn the_scan_of_a_cte_calls_it() {
    let plan = plan(
        r#"{"Plan": {"Node Type": "Limit", "Plans": [
            {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Rows": 9, "Actual Loops": 1},
            {"Node Type": "Sort", "Plans": [{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Rows": 10, "Actual Loops": 1}]}]}}"#,
    );
    let nodes = plan.nodes;
    assert_eq!(nodes.iter().map(single).collect::<Vec<_>>(), [None, Some(3), Some(0), Some(2)]);
}

/// Returns the caller of an InitPlan in a plan with a parallel and a plain scan; both conditions are given.
fn init_plan_caller(label: &str, parallel: &str, plain: &str) -> Option<usize> {
    callers(&format!(
        r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [
            {{"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "{label}", "Actual Total Time": 9.0, "Actual Loops": 1}},
            {{"Node Type": "Gather", "Actual Total Time": 12.0, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Seq Scan", "Filter": "{parallel}", "Actual Total Time": 2.0, "Actual Loops": 3}}]}},
            {{"Node Type": "Seq Scan", "Filter": "{plain}", "Actual Total Time": 10.0, "Actual Loops": 1}}]}}}}"#
    ))[1]
}

#[test]
fn an_init_plan_runs_within_the_node_that_uses_its_value() {
    assert_eq!(init_plan_caller("InitPlan 1", "", "(a > (InitPlan 1).col1)"), Some(4));
    assert_eq!(init_plan_caller("InitPlan 1 (returns $0,$1)", "", "(a > $1)"), Some(4));
    // The Gather computes the value before its workers start.
    assert_eq!(init_plan_caller("InitPlan 1", "(a > (InitPlan 1).col1)", ""), Some(2));
}

#[test]
fn an_init_plan_does_not_run_within_a_node_that_took_less_time() {
    // The Append used the value to prune partitions. EXPLAIN does not show that.
    let pruned = callers(
        r#"{"Plan": {"Node Type": "Append", "Actual Total Time": 200.0, "Actual Loops": 1, "Plans": [
            {"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Total Time": 190.0, "Actual Loops": 1},
            {"Node Type": "Seq Scan", "Filter": "(day >= (InitPlan 1).col1)", "Actual Total Time": 5.0, "Actual Loops": 1}]}}"#,
    );
    assert_eq!(pruned[1], Some(0));
}

#[test]
fn an_init_plan_runs_within_the_innermost_node_that_took_as_long() {
    let bitmap = callers(
        r#"{"Plan": {"Node Type": "Bitmap Heap Scan", "Recheck Cond": "(a = $0)", "Actual Total Time": 200.0, "Actual Loops": 1, "Plans": [
            {"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1 (returns $0)", "Actual Total Time": 190.0, "Actual Loops": 1},
            {"Node Type": "Bitmap Index Scan", "Index Cond": "(a = $0)", "Actual Total Time": 195.0, "Actual Loops": 1}]}}"#,
    );
    assert_eq!(bitmap[1], Some(2));
}

#[test]
fn ctes_with_the_same_name_have_different_readers() {
    let cte = |ms: f64| {
        format!(
            r#"{{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {ms}, "Actual Loops": 1, "Plans": [
            {{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 9.0, "Actual Loops": 1}}]}}"#
        )
    };
    // A view that is used twice.
    let twice = callers(&format!(
        r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [{}, {}]}}}}"#,
        cte(11.0),
        cte(10.0)
    ));
    assert_eq!(twice, [None, Some(0), Some(1), Some(0), Some(3)]);
    // WITH c AS (WITH c AS (...) SELECT * FROM c) SELECT * FROM c
    let nested = callers(&format!(
        r#"{{"Plan": {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [{}]}}}}"#,
        cte(10.0).replacen(
            r#""CTE Name""#,
            r#""Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "CTE Name""#,
            1
        )
    ));
    assert_eq!(nested, [None, Some(0), Some(1)]);
    // PostgreSQL 19 numbers them. The plan of the outer CTE reads the inner CTE.
    let numbered = callers(
        r#"{"Plan": {"Node Type": "Append", "Actual Total Time": 40.0, "Actual Loops": 1, "Plans": [
            {"Node Type": "CTE Scan", "CTE Name": "c", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 20.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c_1", "Actual Total Time": 9.0, "Actual Loops": 1}]},
            {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": 30.0, "Actual Loops": 1}]}}"#,
    );
    assert_eq!(numbered, [None, Some(3), Some(1), Some(0)]);
}

#[test]
fn an_init_plan_without_a_visible_user_keeps_its_caller() {
    assert_eq!(init_plan_caller("InitPlan 1", "", "(a > (InitPlan 12).col1)"), Some(0));
    assert_eq!(init_plan_caller("InitPlan 1 (returns $1)", "(a > $10)", "(b = 1)"), Some(0));
}

#[test]
fn ctes_that_call_each_other_in_a_circle_keep_their_callers() {
    let cte = |name: &str, scanned: &str| {
        format!(
            r#"{{"Node Type": "CTE Scan", "CTE Name": "{scanned}", "Parent Relationship": "InitPlan", "Subplan Name": "CTE {name}", "Actual Rows": 1, "Actual Loops": 1}}"#
        )
    };
    let plan = plan(&format!(
        r#"{{"Plan": {{"Node Type": "Result", "Actual Rows": 1, "Actual Loops": 1, "Plans": [{}, {}]}}}}"#,
        cte("a", "b"),
        cte("b", "a")
    ));
    assert_eq!(plan.nodes.iter().map(single).collect::<Vec<_>>(), [None, Some(0), Some(0)]);
}

#[test]
fn too_many_subplans_of_one_name_keep_their_callers() {
    let caller = |count: usize| {
        let cte =
            r#"{"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Loops": 1}"#;
        callers(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Loops": 1, "Plans": [{}, {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 1}}]}}}}"#,
            vec![cte; count].join(",")
        ))[1]
    };
    assert_eq!((caller(10), caller(11)), (Some(11), Some(0)));
}

#[test]
fn the_only_possible_caller_is_known() {
    let has_one_caller = |json: &str| {
        plan(json)
            .nodes
            .iter()
            .map(|node| node.parent.is_some() && node.callers.are_certain && !node.callers.are_several())
            .collect::<Vec<_>>()
    };
    let cte = |kind: &str, scans: usize| {
        let scan = r#", {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 1}"#.repeat(scans);
        has_one_caller(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Loops": 1, "Plans": [
                {{"Node Type": "{kind}", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Loops": 1}}{scan}]}}}}"#
        ))[1]
    };
    // What a reader does not read of a data-modifying CTE runs later.
    assert_eq!([cte("Seq Scan", 1), cte("Seq Scan", 2), cte("ModifyTable", 1)], [true, false, false]);
    let init_plan = |top: &str, users: usize| {
        let scan =
            r#", {"Node Type": "Seq Scan", "Filter": "(a > (InitPlan 1).col1)", "Actual Loops": 1}"#.repeat(users);
        has_one_caller(&format!(
            r#"{{"Plan": {{"Node Type": "{top}", "Actual Loops": 1, "Plans": [
                {{"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Loops": 1}}{scan}]}}}}"#
        ))[1]
    };
    assert_eq!([0, 1, 2].map(|users| init_plan("Hash Join", users)), [false, true, false]);
    assert!(!init_plan("Append", 1), "an Append may run it to find out which partitions it needs");
    let subplan = has_one_caller(
        r#"{"Plan": {"Node Type": "Seq Scan", "Plans": [{"Node Type": "Result", "Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1"}]}}"#,
    );
    assert_eq!(subplan, [false, false], "another node may run the same subplan");
}
