//! Published cases, and what bounds have to hold.

use super::*;

pub(super) fn known(read_ns: Option<f64>, plain_ms: Option<f64>, text: &str) -> Result<ExplainReport, Error> {
    let read = |_: &Explained| Ok(Read { ns: read_ns.unwrap(), system_ns: read_ns, differ: 0.0, note: None });
    captured(text, &Known { read: read_ns.is_some().then_some(&read), plain_ms })
}

fn by_read(ns: f64, text: &str) -> ExplainReport {
    known(Some(ns), None, text).unwrap()
}

/// `SELECT count(*)` of so many rows.
fn counted(rows: u64, ms: f64) -> String {
    format!(
        "Aggregate  (cost=1.00..2.00 rows=1 width=8) (actual time={ms:.3}..{ms:.3} rows=1 loops=1)
  ->  Seq Scan on t  (cost=0.00..1.00 rows={rows} width=0) (actual time=0.010..{:.3} rows={rows} loops=1)
Planning Time: 0.050 ms
Execution Time: {ms:.3} ms
",
        ms * 0.7
    )
}

/// The join of two generate_series of 100 000 rows each: 500 000 calls of 5 nodes.
fn joined(ms: f64) -> String {
    let node = |indent: usize, name: &str, part: f64, rows: u64| {
        let arrow = if indent == 0 { "" } else { "->  " };
        format!("{}{arrow}{name} (actual time=0.010..{:.3} rows={rows} loops=1)\n", " ".repeat(indent), ms * part)
    };
    [
        node(0, "Aggregate", 1.0, 1),
        node(2, "Merge Join", 0.9, 100_000),
        node(8, "Sort", 0.3, 100_000),
        node(14, "Function Scan on generate_series a", 0.102, 100_000),
        node(8, "Sort", 0.3, 100_000),
        node(14, "Function Scan on generate_series b", 0.102, 100_000),
        format!("Execution Time: {ms:.3} ms\n"),
    ]
    .concat()
}

/// Host, read cost in ns, plan, plain ms, and ns a call.
fn published() -> [(&'static str, f64, String, f64, f64); 4] {
    [
        ("i7-860, tsc", 36.0, counted(100_000, 16.6), 9.8, 68.0),
        ("i7-860, acpi_pm", 723.0, counted(100_000, 115.9), 9.8, 1061.0),
        ("laptop", 22.0, counted(50_000_000, 4203.0), 1923.0, 45.6),
        ("Docker for Mac, hpet", 7400.0, joined(7645.0), 155.0, 14_980.0),
    ]
}

#[test]
fn the_interval_of_a_read_cost_holds_the_published_plain_time() {
    for (host, read, plan, plain, _) in published() {
        let report = by_read(read, &plan);
        let corrected = report.corrected_ms;
        assert!(corrected.low <= plain && plain <= corrected.high, "{host}: {corrected:?}");
        assert!(corrected.high < report.reported_ms && corrected.low >= 0.0, "{host}: {corrected:?}");
        let share = report.capture.unwrap().clock_share;
        // Counting rows is a part of what is added, and no part of the clock's.
        let added = 1.0 - plain / report.reported_ms;
        assert!(share.low <= added && added <= share.high + 0.15 && share.high <= 1.0, "{host}: {share:?} {added}");
    }
}

#[test]
fn a_plain_time_implies_the_published_cost_of_a_call() {
    for (host, read, plan, plain, call) in published() {
        let report = known(None, Some(plain), &plan).unwrap();
        let implied = report.capture.unwrap().implied_call_ns.unwrap();
        assert!((implied / call - 1.0).abs() < 0.005, "{host}: {implied}");
        assert!((report.nodes[0].corrected_ms.estimate - plain).abs() < 0.01 * plain + 0.001 * call, "{host}");
        let both = known(Some(read), Some(plain), &plan).unwrap();
        let expected = both.capture.unwrap().expected_call_ns.unwrap();
        assert!(expected.low <= implied && implied <= expected.high, "{host}: {expected:?}");
        assert_eq!(both.corrected_ms, report.corrected_ms);
    }
}

#[test]
fn a_read_cost_that_the_plan_contradicts() {
    let error = known(Some(723.0), None, &counted(100_000, 16.6)).unwrap_err();
    assert!(error.what.contains("take 101 ms at least, and the plan took 16.6 ms"), "{}", error.what);
    assert!(known(None, None, &counted(1, 1.0)).is_err());
    // A plain time that holds more than the plan does tells nothing of it.
    let error = known(None, Some(40.0), &counted(100_000, 16.6)).unwrap_err();
    assert!(error.what.contains("without EXPLAIN it took 40 ms"), "{}", error.what);
    // Nothing of what was measured is thrown away.
    assert!(known(None, Some(17.0), &counted(100_000, 16.6)).unwrap().clock_share < 0.05);
}

#[test]
fn a_node_is_known_no_better_than_its_calls() {
    let plan = |inner: &str| {
        format!(
            "Nested Loop (actual time=0.010..100.000 rows=1000 loops=1)
  ->  Seq Scan on a (actual time=0.010..1.000 rows=1000 loops=1)
  ->  Index Scan using i on b (actual time=0.001..0.050 rows={inner} loops=1000)
Execution Time: 100.000 ms
"
        )
    };
    let calls = |inner: &str| by_read(2000.0, &plan(inner)).capture.unwrap().calls;
    // One call a loop if the join wants one row, two if it looks for the end; and 0.5 to 1.5 rows look like 1.
    assert_eq!((calls("1").low, calls("1").high), (3000.0, 1001.0 * 2.0 + 2500.0));
    assert_eq!((calls("1.00").low, calls("1.00").high), (3000.0, 1001.0 * 2.0 + 2005.0));
    // 0.0005 ms in each of 1000 loops.
    let scan = &by_read(1e-3, &plan("1")).nodes[2];
    assert!(scan.corrected_ms.low <= 49.5 && scan.corrected_ms.high >= 50.49, "{:?}", scan.corrected_ms);
}

#[test]
fn the_last_plan_counts() {
    let two = counted(10, 1.0) + &counted(10, 2.0);
    let report = by_read(20.0, &two);
    assert_eq!((report.reported_ms, report.notes[0].as_str()), (2.0, "there are 2 plans in it; this is the last"));
    let cut = two + "Result  (cost=0.00..0.01 rows=1 width=4)\n";
    let report = by_read(20.0, &cut);
    assert!(report.notes[0].contains("3 plans in it; this is number 2"), "{:?}", report.notes);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let lost: String = joined(100.0).lines().map(|line| line.trim().to_string() + "\n").collect();
    let error = known(Some(20.0), None, &lost).unwrap_err();
    assert!(error.what.contains("Merge Join has too few inputs"), "{}", error.what);
    let grafted = counted(10, 20.0).replace("0.010..14.000", "0.010..30.000");
    let error = known(Some(20.0), None, &grafted).unwrap_err();
    assert!(error.what.contains("Aggregate took 20 ms, and what hangs below it 30 ms"), "{}", error.what);
    let of_another_run = joined(100.0).replace("Execution Time: 100.000 ms", "Execution Time: 60.000 ms");
    let error = known(Some(20.0), None, &of_another_run).unwrap_err();
    assert!(error.what.contains("its Execution Time is 60 ms"), "{}", error.what);
}

#[test]
fn a_log_in_csv() {
    let log = "2026-11-21 22:20:13 UTC,,,7,,,1,,,,0,LOG,00000,\"duration: 5.100 ms  plan:\nQuery Text: SELECT 1\n\
        Seq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=0.010..5.000 rows=9 loops=1)\n\
          Filter: (\"\"I\"\" = 1)\",,,,,\n2026-11-21 22:20:14 UTC,,,7,,,2,,,,0,LOG,00000,\"checkpoint\",,,,,\n";
    let report = known(None, Some(1.0), log).unwrap();
    assert_eq!((report.reported_ms, report.statement.as_deref()), (5.1, Some("SELECT 1")));
    assert_eq!(report.nodes.len(), 1);
}

#[test]
fn a_plan_that_is_cut_off() {
    let log = "LOG:  duration: 100.000 ms  plan:\n".to_string() + &joined(100.0);
    let whole = log.trim_end().rsplit_once('\n').unwrap().0;
    assert!(known(Some(20.0), None, whole).is_ok());
    for lines in 2..7 {
        let cut: String = whole.lines().take(lines).map(|line| format!("{line}\n")).collect();
        let error = known(Some(20.0), None, &cut).unwrap_err();
        assert!(error.what.contains("has too few inputs"), "{cut}{}", error.what);
    }
}

#[test]
fn a_line_that_is_cut_or_wrapped() {
    let append = "Append  (cost=0.00..9.00 rows=2 width=4) (actual time=0.010..20.000 rows=2000 loops=1)
  ->  Seq Scan on a  (cost=0.00..4.00 rows=1 width=4) (actual time=0.010..9.000 rows=1000 loops=1)
  ->  Seq Scan on b  (cost=0.00..4.00 rows=1 width=4) (actual time=0.010..9.000 rows=1000 loops=1)
";
    let log = format!("LOG:  duration: 21.000 ms  plan:\n{append}");
    assert!(known(Some(20.0), None, &log).is_ok());
    let wrapped = [" (actual", " (cost", " width", " on b"].map(|part| {
        let at = log.rfind(part).unwrap();
        format!("{}\n{}", &log[..at], &log[at + 1..])
    });
    for text in wrapped.iter().map(String::as_str).chain([&log[..log.len() - 20], &log[..log.len() - 60]]) {
        let error = known(Some(20.0), None, text).unwrap_err();
        assert!(error.what.contains("a line of the plan is cut off"), "{text}{}", error.what);
    }
}

#[test]
fn times_of_tasks_are_not_those_of_the_whole() {
    let citus =
        "Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0) (actual time=10.000..10.200 rows=32 loops=1)
  Task Count: 32
  Tasks Shown: One of 32
  ->  Task
        Node: host=w1 port=5432 dbname=shop
        ->  Aggregate  (cost=1.00..2.00 rows=1 width=8) (actual time=0.300..0.300 rows=1 loops=1)
              ->  Seq Scan on t_102008 t  (cost=0.00..1.00 rows=1 width=0) (actual time=0.010..0.200 rows=100 loops=1)
            Planning Time: 0.100 ms
            Execution Time: 0.500 ms
Planning Time: 1.000 ms
Execution Time: 10.500 ms
";
    assert_eq!(by_read(20.0, citus).reported_ms, 10.5);
}

#[test]
fn rows_changed_on_a_foreign_server_are_one_call() {
    let text = "Update on ft  (cost=0.00..9.00 rows=1 width=4) (actual time=500.000..500.000 rows=0 loops=1)
  ->  Foreign Update on ft  (cost=0.00..9.00 rows=1 width=4) (actual time=500.000..500.000 rows=1000000 loops=1)
Execution Time: 500.100 ms
";
    let capture = by_read(700.0, text).capture.unwrap();
    assert_eq!((capture.calls.low, capture.calls.estimate), (2.0, 2.0));
}

#[test]
fn a_plan_in_json_behind_one_in_text() {
    let json = r#"[
  {
    "Plan": {"Node Type": "Seq Scan", "Actual Total Time": 2.0, "Actual Rows": 9, "Actual Loops": 1},
    "Execution Time": 2.1
  }
]
"#;
    let report = by_read(20.0, &format!("{}and with the index:\n{json}", counted(10, 5.0)));
    assert_eq!((report.reported_ms, report.notes[0].as_str()), (2.1, "there are 2 plans in it; this is the last"));
}

#[test]
fn parallel_workers_may_have_had_one_cpu() {
    let plan = r#"[{"Plan": {"Node Type": "Gather", "Actual Total Time": 1000.0, "Actual Rows": 1, "Actual Loops": 1, "Workers Launched": 2,
        "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Total Time": 900.0, "Actual Rows": 1000000, "Actual Loops": 3}]},
        "Execution Time": 1000.0}]"#;
    let report = known(Some(20.0), None, plan).unwrap();
    // A call takes 46 ns and 10 more for counting, at most; three million of them.
    let most = 3.0 * 56.0;
    assert!((report.corrected_ms.low - (1000.0 - most) * 0.97).abs() < 1.0, "{:?}", report.corrected_ms);
}

#[test]
fn another_run_differs_as_much_as_its_host_is_disturbed() {
    let with = |differ: f64, plain_ms: Option<f64>| {
        let read = move |_: &Explained| Ok(Read { ns: 20.0, system_ns: Some(20.0), differ, note: None });
        captured(&counted(100_000, 16.6), &Known { read: Some(&read), plain_ms })
    };
    let of = |differ: f64| with(differ, None).unwrap();
    let (quiet, disturbed) = (of(0.001), of(0.14));
    let (low, high) = (16.6 - 100_002.0 * 56e-6, 16.6 - 100_002.0 * 4e-6);
    for (report, differ) in [(&quiet, 0.03), (&disturbed, 0.14)] {
        assert!((report.corrected_ms.low - low * (1.0 - differ)).abs() < 0.01, "{:?}", report.corrected_ms);
        assert!((report.corrected_ms.high - high / (1.0 - differ)).abs() < 0.01, "{:?}", report.corrected_ms);
        // The root's has its calls on top, which nobody runs within.
        let root = report.nodes[0].corrected_ms;
        assert!(
            (root.low - report.corrected_ms.low).abs() < 0.01 && (root.high - report.corrected_ms.high).abs() < 0.01,
            "{root:?}"
        );
    }
    // What the clock had of that run is another matter.
    assert_eq!(quiet.clock_share, disturbed.clock_share);
    let differ = |report: &ExplainReport| report.capture.as_ref().unwrap().runs_differ;
    assert_eq!((differ(&quiet), differ(&disturbed)), (0.03, 0.14));
    // Nor is it told from a plain time that is another run's.
    assert!(with(0.001, Some(18.0)).unwrap_err().what.contains("without EXPLAIN it took 18 ms"));
    let high = with(0.14, Some(18.0)).unwrap().corrected_ms.high;
    assert!((high - 18.0 / 0.86).abs() < 0.01, "{high}");
}

#[test]
fn what_an_init_plan_takes_is_not_its_asker_s_own() {
    let plan = "Sort (actual time=30.000..30.000 rows=1 loops=1)
  InitPlan 1 (returns $1)
    ->  Aggregate (actual time=9.000..9.000 rows=1 loops=1)
          ->  Seq Scan on t t_1 (actual time=0.010..8.000 rows=9 loops=1)
  ->  Seq Scan on t (actual time=9.100..29.000 rows=1 loops=1)
        Filter: (a > $1)
Execution Time: 30.000 ms
";
    let own = |plan: &str| by_read(20.0, plan).nodes.iter().map(|node| node.reported_self_ms).collect::<Vec<_>>();
    assert_eq!(own(plan), [1.0, 1.0, 8.0, 20.0]);
    // What a log says next is no condition of the plan's last node.
    let logged = plan.replace("        Filter: (a > $1)\n", "")
        + "2026-11-22 10:00:00 UTC [9] LOG:  execute <unnamed>: SELECT $1\n";
    assert_eq!(own(&logged), [0.0, 1.0, 8.0, 29.0]);
}
