//! Runs of synthetic plans.

use super::*;
use proptest::prelude::*;

fn node(kind: &str, rows: f64, plans: Vec<PlannerNode>) -> PlannerNode {
    PlannerNode { kind: kind.into(), rows, plans, ..PlannerNode::default() }
}

fn cost(node: PlannerNode, startup_cost: f64, total_cost: f64) -> PlannerNode {
    PlannerNode { startup_cost, total_cost, ..node }
}

fn scan(rows: f64) -> PlannerNode {
    node("Seq Scan", rows, Vec::new())
}

/// Returns the loops and the rows per loop of each node.
fn loops_and_rows(root: &PlannerNode, actual_rows: Option<f64>) -> Vec<(f64, f64)> {
    let plan = assumed_run(root, actual_rows, Share::Half);
    plan.nodes.iter().map(|node| (node.node.loops.unwrap(), node.node.rows.unwrap().per_loop)).collect()
}

#[test]
fn the_inner_side_of_a_nested_loop_runs_once_per_outer_row() {
    let join = node("Nested Loop", 500.0, vec![scan(100.0), scan(20.0)]);
    assert_eq!(loops_and_rows(&join, None), [(1.0, 500.0), (1.0, 100.0), (100.0, 20.0)]);
    // Without a filter on the join, its rows tell how many rows a loop returns.
    let inner_join = PlannerNode { join: Some("Inner".into()), ..join.clone() };
    assert_eq!(loops_and_rows(&inner_join, None)[2], (100.0, 5.0));
    let semi_join = PlannerNode { join: Some("Semi".into()), ..join };
    assert_eq!(loops_and_rows(&semi_join, None)[2], (100.0, 1.0));
}

#[test]
fn a_nested_loop_of_a_million_has_as_many_calls() {
    let inner = node("Materialize", 1000.0, vec![scan(1000.0)]);
    let join = node("Nested Loop", 1e6, vec![scan(1000.0), inner]);
    let plan = assumed_run(&node("Aggregate", 1.0, vec![join]), Some(1.0), Share::Half);
    let calls: Vec<f64> = plan.nodes.iter().map(|node| node.calls.estimate).collect();
    assert_eq!(calls, [2.0, 1_000_001.0, 1001.0, 1_001_000.0, 1001.0]);
}

#[test]
fn a_limit_stops_its_input_but_not_a_sort() {
    let limit = |child| cost(node("Limit", 10.0, vec![child]), 0.0, 1.0);
    assert_eq!(loops_and_rows(&limit(cost(scan(1000.0), 0.0, 100.0)), None)[1], (1.0, 10.0));
    // The cost includes the rows that OFFSET skips.
    let with_offset = PlannerNode { total_cost: 5.0, ..limit(cost(scan(1000.0), 0.0, 100.0)) };
    assert_eq!(loops_and_rows(&with_offset, None)[1], (1.0, 50.0));
    let sort = cost(node("Sort", 1000.0, vec![scan(1000.0)]), 99.0, 100.0);
    let rows: Vec<f64> = loops_and_rows(&limit(sort), None).into_iter().map(|(_, rows)| rows).collect();
    assert_eq!(rows, [10.0, 1000.0 * (1.0f64 / 100.0), 1000.0]);
}

#[test]
fn the_actual_rows_correct_the_root_and_what_it_passes_on() {
    let sort = node("Sort", 10.0, vec![scan(10.0)]);
    assert_eq!(loops_and_rows(&sort, Some(50.0)), [(1.0, 50.0), (1.0, 50.0)]);
    // A generic plan assumes a tenth of the rows for LIMIT.
    let limit = node("Limit", 128.0, vec![scan(1024.0)]);
    assert_eq!(loops_and_rows(&limit, Some(8.0)), [(1.0, 8.0), (1.0, 8.0)]);
    assert_eq!(loops_and_rows(&limit, Some(4096.0))[1], (1.0, 4096.0));
    // The number of groups says nothing about the input.
    let aggregate = node("Aggregate", 10.0, vec![scan(1000.0)]);
    assert_eq!(loops_and_rows(&aggregate, Some(50.0)), [(1.0, 50.0), (1.0, 1000.0)]);
    // The rows of UPDATE are those that it changes.
    let update = node("ModifyTable", 0.0, vec![scan(1.0)]);
    assert_eq!(loops_and_rows(&update, Some(3.0)), [(1.0, 0.0), (1.0, 3.0)]);
}

#[test]
fn processes_share_the_rows_of_a_parallel_scan_and_not_those_of_a_hash() {
    let parallel = |rows| PlannerNode { parallel_aware: true, ..scan(rows) };
    let hash = node("Hash", 50.0, vec![scan(50.0)]);
    let join = node("Hash Join", 100.0, vec![parallel(100.0), hash]);
    let gather = PlannerNode { workers: 2.0, ..node("Gather", 240.0, vec![join]) };
    let all = loops_and_rows(&gather, None);
    // Two workers, and 0.4 of the leader.
    assert_eq!(all[2].0 * all[2].1, 240.0);
    assert_eq!([all[0], all[3], all[4]], [(1.0, 240.0), (3.0, 50.0), (3.0, 50.0)]);
}

#[test]
fn a_memoize_runs_its_input_for_new_keys_only() {
    let memoize = cost(node("Memoize", 1.0, vec![cost(scan(1.0), 0.0, 8.0)]), 0.0, 8.0);
    let join = |total_cost| {
        let outer = cost(scan(101.0), 0.0, 10.0);
        loops_and_rows(&cost(node("Nested Loop", 101.0, vec![outer, memoize.clone()]), 0.0, total_cost), None)[3].0
    };
    // Each of the 100 further loops costs a quarter of the input.
    assert!((join(10.0 + 8.0 + 100.0 * 2.0) - 101.0 / 4.0).abs() < 1e-9);
    assert!((join(18.0) - 1.0).abs() < 1e-9 && (join(1e6) - 101.0).abs() < 1e-9);
}

#[test]
fn subplans_run_once_per_row_or_once() {
    let with_subplan = |label: &str, filter: Option<&str>, rows| {
        let subplan = PlannerNode { subplan: Some(label.into()), ..cost(scan(rows), 0.0, 2.0) };
        let parent = PlannerNode { filter: filter.map(String::from), plans: vec![subplan], ..scan(30.0) };
        loops_and_rows(&PlannerNode { total_cost: 200.0, ..parent }, None)[1]
    };
    assert_eq!(with_subplan("CTE c", None, 7.0), (1.0, 7.0));
    assert_eq!(with_subplan("InitPlan 1 (returns $0)", None, 7.0), (1.0, 1.0));
    assert_eq!(with_subplan("SubPlan 1", None, 1.0), (30.0, 1.0));
    assert_eq!(with_subplan("SubPlan 1", Some("(hashed SubPlan 1)"), 7.0), (1.0, 7.0));
    // The scan costs as much as a hundred runs of the subplan.
    assert_eq!(with_subplan("SubPlan 1", Some("(a > (SubPlan 1))"), 1.0), (100.0, 1.0));
}

fn any_plan() -> impl Strategy<Value = PlannerNode> {
    const KINDS: [&str; 12] = [
        "Nested Loop",
        "Hash Join",
        "Limit",
        "Gather",
        "Materialize",
        "Memoize",
        "Sort",
        "Aggregate",
        "Append",
        "Recursive Union",
        "ModifyTable",
        "Seq Scan",
    ];
    let figure = prop_oneof![0.0..1e4, Just(0.0), Just(1e100)];
    let leaf = (0..KINDS.len(), figure, -1e9..1e9f64, 0.0..1e9f64, 0.0..9f64).prop_map(
        |(kind, rows, startup, total, workers)| PlannerNode {
            workers,
            ..cost(node(KINDS[kind], rows, Vec::new()), startup, total)
        },
    );
    leaf.prop_recursive(4, 20, 3, |inner| {
        (inner.clone(), prop::collection::vec((inner, any::<bool>()), 0..3)).prop_map(|(parent, children)| {
            let child = |(node, is_subplan)| match is_subplan {
                true => PlannerNode { subplan: Some("SubPlan 1".into()), ..node },
                false => node,
            };
            PlannerNode { plans: children.into_iter().map(child).collect(), ..parent }
        })
    })
}

proptest! {
    #[test]
    fn calls_are_finite_and_not_negative(root in any_plan(), rows in prop::option::of(0.0..1e12)) {
        for share in [Share::Half, Share::Most] {
            for node in assumed_run(&root, rows, share).nodes {
                let calls = node.calls;
                prop_assert!(0.0 <= calls.low && calls.low <= calls.estimate && calls.high.is_finite(), "{:?}", node);
            }
        }
    }
}
