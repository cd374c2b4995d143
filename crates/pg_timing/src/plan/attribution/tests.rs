//! Exact figures of every node. The comments give the formulas.

use super::*;

/// Returns a run of a parallel plan: a Gather of 100 ms above a scan in three processes, with 100 calls each.
fn run(gather_ms: f64, scan_ms: f64) -> Plan {
    let json = format!(
        r#"{{"Plan": {{"Node Type": "Gather", "Actual Total Time": {gather_ms:?}, "Actual Rows": 297, "Actual Loops": 1, "Plans": [
            {{"Node Type": "Seq Scan", "Relation Name": "t", "Actual Total Time": {scan_ms:?}, "Actual Rows": 99,
              "Actual Loops": 3}}]}}}}"#
    );
    Plan::new(serde_json::from_str(&json).unwrap(), gather_ms)
}

/// Returns four runs whose scans take 40% of the time, give or take 2%.
fn runs() -> Vec<Plan> {
    [40.0, 42.0, 38.0, 40.0].map(|scan_ms| run(100.0, scan_ms)).into()
}

const TOTAL_CALLS: f64 = 398.0;

/// 100 ms: 39.8 ms in 398 calls, 4 ms unexplained, 56.2 ms baseline. The statement's time limits no node.
const CHARGE: Charge = Charge {
    reported: 100.0,
    whole: Range { low: 0.0, estimate: 100.0, high: 100.0 },
    baseline_margin: 2.0,
    per_call: 0.1,
    calls_margin: 1.5,
    unexplained: 4.0,
    clock_per_call: 0.08,
    of_any_session: 0.0,
};

fn assert_range(range: Range, [low, estimate, high]: [f64; 3]) {
    let error = (range.low - low).abs().max((range.estimate - estimate).abs()).max((range.high - high).abs());
    assert!(error < 1e-9, "{range:?}");
}

#[test]
fn a_node_has_its_corrected_time_and_margins() {
    let nodes = attribute(&runs(), TOTAL_CALLS, &CHARGE, None);
    let [gather, scan] = &nodes[..] else { panic!("{nodes:?}") };
    // Estimates: (100 - 0.1 * 249) * 56.2 / 60.2 and (40 - 0.1 * 50) * 56.2 / 60.2. Their margins: the variation of the
    // runs, 2 ms * share, 0.0025 ms * calls and the distribution margin in quadrature, then rounding.
    assert_range(gather.corrected_ms, [67.85045429803067, 70.10996677740863, 72.36947925678659]);
    assert_range(scan.corrected_ms, [28.439567337658584, 32.674418604651166, 36.90926987164375]);
    for (off, expected) in [
        (gather.reported_self_off_ms, 3.2551422243079693),
        (gather.corrected_self_off_ms, 4.317624716290598),
        (scan.reported_self_off_ms, 3.2546422243079656),
        (scan.corrected_self_off_ms, 4.072065846905037),
    ] {
        assert!((off - expected).abs() < 1e-9, "{nodes:?}");
    }
    // The Gather's self time: the difference of both estimates. Its margin includes 2 ms of the machine's speed *
    // share.
    let (estimate, off) = (70.10996677740863 - 32.674418604651166, 4.317624716290598f64);
    let margin = off.hypot(2.0 * estimate / 56.2);
    assert_range(gather.self_ms, [estimate - margin, estimate, estimate + margin]);
    assert_eq!(scan.self_ms, scan.corrected_ms, "a node without children");
    // 0.08 ms * 249 calls of 100 ms, and 0.08 ms * 50 calls of 40 ms
    assert!((gather.clock_share - 0.1992).abs() < 1e-9 && (scan.clock_share - 0.1).abs() < 1e-9, "{nodes:?}");
}

#[test]
fn a_node_has_its_place_and_its_calls() {
    let nodes = attribute(&runs(), TOTAL_CALLS, &CHARGE, None);
    let scan = &nodes[1];
    assert_eq!((scan.path.as_str(), scan.kind.as_str(), scan.title.as_str()), ("0.0", "Seq Scan", "Seq Scan on t"));
    assert_eq!((scan.depth(), scan.processes, scan.calls), (1, 3, 300.0));
    assert_eq!((scan.reported_ms, scan.rounded_ms), (40.0, 0.0005));
}

#[test]
fn a_node_takes_no_longer_without_timing_than_with_it() {
    let nodes =
        attribute(&runs(), TOTAL_CALLS, &Charge { baseline_margin: 150.0, calls_margin: 150.0, ..CHARGE }, None);
    // The upper limit is the reported time with the margin of the runs and rounding.
    assert_range(nodes[0].corrected_ms, [0.0, 70.10996677740863, 100.0]);
    assert_range(nodes[1].corrected_ms, [0.0, 32.674418604651166, 43.254642224307965]);
    // The self time is at most the reported one of 60 ms, with its error.
    assert_range(nodes[0].self_ms, [0.0, 70.10996677740863 - 32.674418604651166, 63.25514222430797]);
}

#[test]
fn a_node_takes_no_longer_than_its_caller() {
    // The clock went back: the scan seems to take longer than the Gather.
    let nodes = attribute(&[run(100.0, 104.0)], TOTAL_CALLS, &CHARGE, None);
    let [gather, scan] = [0, 1].map(|index| nodes[index].corrected_ms);
    assert_eq!((scan.estimate, scan.high, scan.low), (gather.estimate, gather.high, gather.low));
    // A scan that fits keeps its lower bound.
    let nodes = attribute(&[run(100.0, 80.0)], TOTAL_CALLS, &CHARGE, None);
    let [gather, scan] = [0, 1].map(|index| nodes[index].corrected_ms);
    assert!(scan.estimate < gather.estimate && scan.low > 60.0, "{gather:?} {scan:?}");
}

#[test]
fn no_node_takes_longer_than_the_statement() {
    // The Gather has a part of the calls only, so 70 ms remain of its 100 ms.
    let whole = Range { low: 50.0, estimate: 56.2, high: 60.0 };
    let nodes = attribute(&runs(), TOTAL_CALLS, &Charge { whole, ..CHARGE }, None);
    assert_range(nodes[0].corrected_ms, [50.0, 56.2, 60.0]);
    assert!((nodes[0].corrected_self_ms - (56.2 - nodes[1].corrected_ms.estimate)).abs() < 1e-9, "{nodes:?}");
    // The limit of a subplan that no known node runs.
    let json = r#"{"Plan": {"Node Type": "Seq Scan", "Actual Total Time": 24.0, "Actual Rows": 99, "Actual Loops": 1, "Plans": [
        {"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Total Time": 90.0,
          "Actual Rows": 1, "Actual Loops": 1}]}}"#;
    let plan = Plan::new(serde_json::from_str(json).unwrap(), 100.0);
    let nodes = attribute(&[plan], 101.0, &Charge { whole, ..CHARGE }, None);
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
        let plan = Plan::new(serde_json::from_str(&json).unwrap(), 24.0);
        let charge = Charge { reported: 24.0, unexplained: 0.0, baseline_margin: 0.0, ..CHARGE };
        let nodes = attribute(&[plan], 101.0, &charge, None);
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
    let nodes = attribute(&[run(100.0, 0.0)], TOTAL_CALLS, &CHARGE, None);
    assert_eq!((nodes[1].clock_share, nodes[1].corrected_ms.estimate), (0.0, 0.0));
}

#[test]
fn the_first_rank_is_1() {
    let nodes = attribute(&runs(), TOTAL_CALLS, &CHARGE, None);
    assert_eq!(
        [0, 1].map(|index| (nodes[index].rank, nodes[index].corrected_rank)),
        [(Some(1), Some(1)), (Some(2), Some(2))]
    );
}

#[test]
fn the_topmost_node_takes_as_long_as_the_statement_without_its_start_and_end() {
    // The execution takes 10 ms longer than the Gather, so the Gather takes at least 79.5 - 10 ms.
    let whole = Range { low: 79.5, estimate: 80.0, high: 90.0 };
    let nodes = attribute(&runs(), TOTAL_CALLS, &Charge { reported: 110.0, whole, ..CHARGE }, None);
    let gather = nodes[0].corrected_ms;
    assert!(gather.low == 69.5 && gather.low < gather.estimate, "{gather:?}");
}
