//! Exact figures of every node. The comments give the formulas.

use super::*;
use crate::plan::tests::plan_of_json;
use crate::report::depth;

/// Returns a run of a parallel plan: a Gather of 100 ms above a scan in three processes, with 100 calls each.
fn run(gather_ms: f64, scan_ms: f64) -> Plan {
    let json = format!(
        r#"{{"Plan": {{"Node Type": "Gather", "Actual Total Time": {gather_ms:?}, "Actual Rows": 297, "Actual Loops": 1, "Plans": [
            {{"Node Type": "Seq Scan", "Relation Name": "t", "Actual Total Time": {scan_ms:?}, "Actual Rows": 99,
              "Actual Loops": 3}}]}}}}"#
    );
    plan_of_json(&json, gather_ms)
}

/// Returns four runs whose scans take 40% of the time, give or take 2%.
fn runs() -> Vec<Plan> {
    [40.0, 42.0, 38.0, 40.0].map(|scan_ms| run(100.0, scan_ms)).into()
}

/// 139.8 ms: 39.8 ms in 398 calls, and 100 ms baseline.
const OVERHEAD: Overhead = Overhead {
    reported: 139.8,
    corrected: Range { low: 96.0, estimate: 100.0, high: 105.0 },
    calls: 398.0,
    clock: 31.84,
    unexplained: 0.0,
};

fn assert_range(range: Range, [low, estimate, high]: [f64; 3]) {
    let error = (range.low - low).abs().max((range.estimate - estimate).abs()).max((range.high - high).abs());
    assert!(error < 1e-6, "{range:?}");
}

#[test]
fn a_node_is_charged_for_the_calls_below_it_and_for_half_of_its_own() {
    let nodes = attribute(&runs(), &OVERHEAD);
    let [gather, scan] = &nodes[..] else { panic!("{nodes:?}") };
    // 100 - 0.1 * 249, and 40 - 0.1 * 50.
    assert!((gather.corrected_ms.estimate - 75.1).abs() < 1e-9 && (scan.corrected_ms.estimate - 35.0).abs() < 1e-9);
    assert!((gather.corrected_self_ms - 40.1).abs() < 1e-9 && scan.self_ms == scan.corrected_ms, "{gather:?}");
    assert!(scan.self_ms.low < 34.0 && scan.self_ms.high > 36.0, "the runs vary: {scan:?}");
    // 0.08 ms * 249 calls of 100 ms, and 0.08 ms * 50 calls of 40 ms
    assert!((gather.clock_share - 0.1992).abs() < 1e-9 && (scan.clock_share - 0.1).abs() < 1e-9, "{nodes:?}");
}

#[test]
fn the_error_of_the_overhead_is_shared_by_the_calls_or_by_the_time() {
    let exact = Part { reported: 139.8, calls_inside: 398.0, boundary_calls: 0.0, variation: 0.0, rounding: 0.0 };
    let all = OVERHEAD.without(&exact);
    assert!((all.estimate - 100.0).abs() < 1e-9 && (all.margins[0] - 4.0).abs() < 1e-9, "{:?}", all.margins);
    let half = OVERHEAD.without(&Part { reported: 40.0, calls_inside: 199.0, ..exact });
    let own = 199.0 * 0.5 * max_overlap(0.1);
    assert!((half.margins[0] - own.hypot(2.0)).abs() < 1e-9 && (half.margins[1] - own.hypot(2.5)).abs() < 1e-9);
    // Half of the calls have 20.1 ms of the 100 ms.
    assert!((half.own_margin - own.hypot(5.0 * (0.5 - 0.201))).abs() < 1e-9, "{}", half.own_margin);
    let without_calls = OVERHEAD.without(&Part { reported: 10.0, calls_inside: 0.0, ..exact });
    assert!((without_calls.margins[1] - 0.5).abs() < 1e-9, "{:?}", without_calls.margins);
}

#[test]
fn a_node_has_its_place_and_its_calls() {
    let nodes = attribute(&runs(), &OVERHEAD);
    let scan = &nodes[1];
    assert_eq!((scan.path.as_str(), scan.kind.as_str(), scan.title.as_str()), ("0.0", "Seq Scan", "Seq Scan on t"));
    assert_eq!((depth(&scan.path), scan.processes, scan.calls), (1, 3, 300.0));
    assert_eq!((scan.reported_ms, scan.rounded_ms), (40.0, 0.0005));
}

#[test]
fn a_node_takes_no_longer_than_its_caller() {
    // The clock went back: the scan seems to take longer than the Gather.
    let nodes = attribute(&[run(100.0, 104.0)], &OVERHEAD);
    let [gather, scan] = [0, 1].map(|index| nodes[index].corrected_ms);
    assert_eq!((scan.estimate, scan.high, scan.low), (gather.estimate, gather.high, gather.low));
    // A scan that fits keeps its lower bound.
    let nodes = attribute(&[run(100.0, 80.0)], &OVERHEAD);
    let [gather, scan] = [0, 1].map(|index| nodes[index].corrected_ms);
    assert!(scan.estimate < gather.estimate && scan.low > 65.0, "{gather:?} {scan:?}");
}

#[test]
fn no_node_takes_longer_than_the_statement() {
    // The Gather has a part of the calls only, so 70 ms remain of its 100 ms.
    let whole = Range { low: 50.0, estimate: 56.2, high: 60.0 };
    let nodes = attribute(&runs(), &Overhead { reported: 100.0, corrected: whole, ..OVERHEAD });
    assert_range(nodes[0].corrected_ms, [50.0, 56.2, 60.0]);
    assert!((nodes[0].corrected_self_ms - (56.2 - nodes[1].corrected_ms.estimate)).abs() < 1e-9, "{nodes:?}");
    // The limit of a subplan that no known node runs.
    let json = r#"{"Plan": {"Node Type": "Seq Scan", "Actual Total Time": 24.0, "Actual Rows": 99, "Actual Loops": 1, "Plans": [
        {"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Total Time": 90.0,
          "Actual Rows": 1, "Actual Loops": 1}]}}"#;
    let plan = plan_of_json(json, 100.0);
    let nodes = attribute(&[plan], &Overhead { reported: 100.0, corrected: whole, ..OVERHEAD });
    assert_range(nodes[1].corrected_ms, [50.0, 56.2, 60.0]);
}

#[test]
fn a_subplan_takes_no_longer_than_its_only_caller() {
    let corrected = |filter: &str| {
        let json = format!(
            r#"{{"Plan": {{"Node Type": "Seq Scan", "Filter": "{filter}", "Actual Total Time": 24.0, "Actual Rows": 99, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Total Time": 20.0,
                  "Actual Rows": 1, "Actual Loops": 1}}]}}}}"#
        );
        let plan = plan_of_json(&json, 24.0);
        // 0.1 ms per call. The statement's time limits no node.
        let whole = Range { low: 110.0, estimate: 113.9, high: 118.0 };
        let charge = Overhead { reported: 124.0, corrected: whole, calls: 101.0, ..OVERHEAD };
        let nodes = attribute(&[plan], &charge);
        [0, 1].map(|index| nodes[index].corrected_ms.estimate)
    };
    let [scan, subplan] = corrected("(a > (InitPlan 1).col1)");
    assert!(scan < 20.0 && subplan == scan, "{scan} {subplan}");
    // The plan does not show which node uses the value.
    let [scan, subplan] = corrected("");
    assert!(scan < subplan && subplan > 19.0, "{scan} {subplan}");
}

#[test]
fn a_node_without_time_has_no_clock_share() {
    let nodes = attribute(&[run(100.0, 0.0)], &OVERHEAD);
    assert_eq!((nodes[1].clock_share, nodes[1].corrected_ms.estimate), (0.0, 0.0));
}

#[test]
fn the_first_rank_is_1() {
    let nodes = attribute(&runs(), &OVERHEAD);
    assert_eq!(
        [0, 1].map(|index| (nodes[index].rank, nodes[index].corrected_rank)),
        [(Some(1), Some(1)), (Some(2), Some(2))]
    );
}

#[test]
fn the_topmost_node_takes_as_long_as_the_statement_without_its_start_and_end() {
    // The execution takes 10 ms longer than the Gather, so the Gather takes at least 79.5 - 10 ms.
    let whole = Range { low: 79.5, estimate: 80.0, high: 90.0 };
    let nodes = attribute(&runs(), &Overhead { reported: 110.0, corrected: whole, ..OVERHEAD });
    let gather = nodes[0].corrected_ms;
    assert!(gather.low >= 69.5 && gather.low < gather.estimate, "{gather:?}");
}
