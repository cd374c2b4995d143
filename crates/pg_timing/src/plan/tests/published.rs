//! Published cases, and the bounds that must hold.

use crate::error::Error;
use crate::log::{Log, Sources};
use crate::plan::{Explained, Inputs, ServerClock};
use crate::report::{CallCost, ExplainReport, Range};
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// Returns the report on the last usable plan of a text, as `explain --plan` does.
pub fn estimate(read_ns: Option<f64>, plain_ms: Option<f64>, text: &str) -> Result<ExplainReport, Error> {
    let read_ns_or_zero = read_ns.unwrap_or_default();
    let clock = |_: &Explained| {
        Ok(ServerClock {
            read_ns: read_ns_or_zero,
            timed_call_ns: None,
            system_read_ns: read_ns,
            cpus: None,
            note: None,
        })
    };
    last_report(text, Inputs { clock: read_ns.is_some().then_some(&clock), plain_ms, document: None })
}

pub fn last_report(text: &str, inputs: Inputs) -> Result<ExplainReport, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let (sources, stop) = (Sources::new(vec![file.path().into()]), AtomicBool::new(false));
    let log = Log { sources, inputs, stop: &stop, progress: &|_| {} };
    Ok(log.last()?.reports.remove(0))
}

pub fn by_read_cost(ns: f64, text: &str) -> ExplainReport {
    estimate(Some(ns), None, text).unwrap()
}

/// Returns the plan of a `SELECT count(*)` of `rows` rows.
pub fn count_plan(rows: u64, ms: f64) -> String {
    format!(
        "Aggregate  (cost=1.00..2.00 rows=1 width=8) (actual time={ms:.3}..{ms:.3} rows=1 loops=1)
  ->  Seq Scan on t  (cost=0.00..1.00 rows={rows} width=0) (actual time=0.010..{:.3} rows={rows} loops=1)
Planning Time: 0.050 ms
Execution Time: {ms:.3} ms
",
        ms * 0.7
    )
}

/// Returns the plan of a join of two generate_series with 100 000 rows each: 500 000 calls of 5 nodes.
pub fn join_plan(ms: f64) -> String {
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

/// Host, read cost in ns, plan, time without EXPLAIN in ms, and overhead per call in ns.
fn published_cases() -> [(&'static str, f64, String, f64, f64); 4] {
    [
        ("i7-860, tsc", 36.0, count_plan(100_000, 16.6), 9.8, 68.0),
        ("i7-860, acpi_pm", 723.0, count_plan(100_000, 115.9), 9.8, 1061.0),
        ("laptop", 22.0, count_plan(50_000_000, 4203.0), 1923.0, 45.6),
        ("Docker for Mac, hpet", 7400.0, join_plan(7645.0), 155.0, 14_980.0),
    ]
}

#[test]
fn the_interval_from_a_read_cost_contains_the_published_plain_time() {
    for (host, read, plan, plain, _) in published_cases() {
        let report = by_read_cost(read, &plan);
        let corrected = report.corrected_ms;
        assert!(corrected.low <= plain && plain <= corrected.high, "{host}: {corrected:?}");
        assert!(corrected.high < report.reported_ms && corrected.low >= 0.0, "{host}: {corrected:?}");
        let share = report.capture.unwrap().clock_share;
        // The overhead includes row counting, which is not clock time.
        let overhead_share = 1.0 - plain / report.reported_ms;
        assert!(
            share.low <= overhead_share && overhead_share <= share.high + 0.15 && share.high <= 1.0,
            "{host}: {share:?} {overhead_share}"
        );
    }
}

/// The headline, the columns and the facts use one figure for the clock.
#[test]
fn overhead_that_reads_cannot_explain_is_not_the_clock() {
    // A million calls of about 50 ns explain a small part of the 400 ms of overhead.
    let report = estimate(Some(20.0), Some(100.05), &count_plan(1_000_000, 500.0)).unwrap();
    let capture = report.capture.as_ref().unwrap();
    let most = capture.calls.high * capture.expected_call_ns.unwrap().high * 1e-6 / 500.0;
    assert!(
        capture.clock_share.low < 0.1 && capture.clock_share.high < most && most < 0.3,
        "{:?}",
        capture.clock_share
    );
    assert!((report.clock_share - capture.clock_share.estimate).abs() < 1e-9);
    let root = &report.nodes[0];
    assert!((root.clock_share - report.clock_share).abs() < 1e-3, "{} {}", root.clock_share, report.clock_share);
    assert!(report.nodes.iter().all(|node| node.clock_share * node.reported_ms <= report.clock_share * 500.0 + 1e-3));
    assert!((report.unexplained_share - (0.8 - most)).abs() < 0.01, "{}", report.unexplained_share);
    let corrected = report.corrected_ms;
    let by_calls = by_read_cost(20.0, &count_plan(1_000_000, 500.0)).corrected_ms;
    assert_eq!(corrected.estimate, by_calls.estimate);
    assert!(corrected.low < 100.0 && corrected.high == by_calls.high, "{corrected:?}");
    // Less overhead than the reads cost: the two contradict each other, so the bounds cover both, and nothing is unexplained.
    let report = estimate(Some(20.0), Some(99.0), &count_plan(1_000_000, 100.0)).unwrap();
    assert!(report.notes[0].contains("contradicts the expected cost"), "{:?}", report.notes);
    let share = report.capture.unwrap().clock_share;
    assert!(share.low < 0.02 && share.estimate < 0.05 && share.high > 0.4, "{share:?}");
    assert_eq!(report.unexplained_share, 0.0);
    // A run without EXPLAIN that took longer: this run without its timing took no longer than with it.
    let slower = self::estimate(None, Some(102.0), &count_plan(1_000_000, 100.0)).unwrap();
    assert!(slower.corrected_ms.high == 100.0 && slower.corrected_ms.estimate == 100.0, "{:?}", slower.corrected_ms);
    assert_eq!((slower.overhead_factor.unwrap().low, slower.overhead_share), (1.0, 0.0));
    let equal = self::estimate(None, Some(100.0), &count_plan(1_000_000, 100.0)).unwrap();
    assert_eq!((equal.corrected_ms.estimate, equal.overhead_share), (100.0, 0.0));
}

/// No clock is slower than 10 us per read.
#[test]
fn overhead_that_no_clock_can_cost_is_not_explained() {
    let report = estimate(None, Some(100.0), &count_plan(5, 500.0)).unwrap();
    assert!(report.overhead_share * 500.0 <= 10.0 * 0.02 && report.clock_share <= report.overhead_share + 1e-9);
    assert!((report.unexplained_share - 0.8).abs() < 0.01 && report.corrected_ms.low < 100.0);
    let screen = crate::document::text::piped(&crate::document::explain::document(&report));
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("At most 0.7% of the reported time is overhead. At least another 80% is not"), "{screen}");
}

#[test]
fn planning_is_no_certain_part_of_the_given_time() {
    let plan = count_plan(100_000, 20.0).replace("Planning Time: 0.050", "Planning Time: 5.000");
    let corrected = |plain| estimate(None, Some(plain), &plan).unwrap().corrected_ms;
    let is_close = |one: Range, low: f64, high: f64| (one.low - low).abs() < 1e-9 && (one.high - high).abs() < 1e-9;
    // A third of the given time may be planning.
    assert!(is_close(corrected(15.0), 10.0 * 0.97, 15.0 / 0.97));
    // The plan was in a cache.
    assert!(is_close(corrected(4.0), 4.0 * 0.97, 4.0 / 0.97));
    let has_note = |plain: f64| {
        let notes = estimate(None, Some(plain), &plan).unwrap().notes;
        notes.iter().any(|note| note.contains("may include planning"))
    };
    assert!(has_note(15.0) && !has_note(4.0));
}

#[test]
fn a_plain_time_implies_the_published_overhead_per_call() {
    for (host, read, plan, plain, call) in published_cases() {
        let report = estimate(None, Some(plain), &plan).unwrap();
        let calls = report.capture.unwrap().calls.estimate;
        let implied = report.overhead_share * report.reported_ms * 1e6 / calls;
        // The given time includes 0.05 ms of planning.
        assert!((implied / call - 1.0).abs() < 0.01, "{host}: {implied}");
        assert!((report.nodes[0].corrected_ms.estimate - plain).abs() < 0.01 * plain + 0.001 * call, "{host}");
        let both = estimate(Some(read), Some(plain), &plan).unwrap();
        let expected = both.capture.unwrap().expected_call_ns.unwrap();
        assert!(expected.low <= implied && implied <= expected.high, "{host}: {expected:?}");
        assert_eq!(both.corrected_ms, report.corrected_ms);
    }
}

#[test]
fn contradictory_inputs_are_refused() {
    let error = estimate(Some(723.0), None, &count_plan(100_000, 16.6)).unwrap_err();
    assert!(error.what.contains("take at least 95.2 ms, but the plan took 16.6 ms"), "{}", error.what);
    // A plain time longer than the plan's time includes something else.
    let error = estimate(None, Some(40.0), &count_plan(100_000, 16.6)).unwrap_err();
    assert!(error.what.contains("--plain-ms says 40 ms without EXPLAIN"), "{}", error.what);
    // A slightly longer plain time is run-to-run variation.
    assert!(estimate(None, Some(17.0), &count_plan(100_000, 16.6)).unwrap().clock_share < 0.05);
}

#[test]
fn a_nodes_calls_have_bounds() {
    let plan = |inner: &str| {
        format!(
            "Nested Loop (actual time=0.010..100.000 rows=1000 loops=1)
  ->  Seq Scan on a (actual time=0.010..1.000 rows=1000 loops=1)
  ->  Index Scan using i on b (actual time=0.001..0.050 rows={inner} loops=1000)
Execution Time: 100.000 ms
"
        )
    };
    let calls = |inner: &str| by_read_cost(2000.0, &plan(inner)).capture.unwrap().calls;
    // The join calls once per loop if it needs one row, and twice if it looks for the end. A printed 1 is 0.5 to 1.5.
    assert_eq!((calls("1").low, calls("1").high), (3000.0, 1001.0 * 2.0 + 2500.0));
    assert_eq!((calls("1.00").low, calls("1.00").high), (3000.0, 1001.0 * 2.0 + 2005.0));
    // The rounding error is 0.0005 ms in each of 1000 loops.
    let scan = &by_read_cost(1e-3, &plan("1")).nodes[2];
    assert!(scan.corrected_ms.low <= 49.5 && scan.corrected_ms.high >= 50.49, "{:?}", scan.corrected_ms);
}

#[test]
fn times_that_do_not_fit_together_are_refused() {
    let cut: String = join_plan(100.0).lines().take(2).map(|line| line.to_string() + "\n").collect();
    let error = estimate(Some(20.0), None, &cut).unwrap_err();
    assert!(error.what.contains("Merge Join has too few inputs"), "{}", error.what);
    let grafted = count_plan(10, 20.0).replace("0.010..14.000", "0.010..30.000");
    let error = estimate(Some(20.0), None, &grafted).unwrap_err();
    assert!(error.what.contains("Aggregate took 20 ms, but its inputs took 30 ms"), "{}", error.what);
    let of_another_run = join_plan(100.0).replace("Execution Time: 100.000 ms", "Execution Time: 60.000 ms");
    let error = estimate(Some(20.0), None, &of_another_run).unwrap_err();
    assert!(error.what.contains("its Execution Time is 60 ms"), "{}", error.what);
}

#[test]
fn a_truncated_plan_is_refused() {
    let log = "LOG:  duration: 100.000 ms  plan:\n".to_string() + &join_plan(100.0);
    let whole = log.trim_end().rsplit_once('\n').unwrap().0;
    assert!(estimate(Some(20.0), None, whole).is_ok());
    for lines in 2..7 {
        let cut: String = whole.lines().take(lines).map(|line| format!("{line}\n")).collect();
        let error = estimate(Some(20.0), None, &cut).unwrap_err();
        assert!(error.what.contains("has too few inputs"), "{cut}{}", error.what);
    }
}

#[test]
fn a_plan_without_one_of_its_nodes_is_refused() {
    // The line of a join is missing.
    let plan = "Aggregate  (cost=0.00..9.00 rows=1 width=8) (actual time=0.010..20.000 rows=1 loops=1)
  ->  Seq Scan on a  (cost=0.00..4.00 rows=1 width=4) (actual time=0.010..9.000 rows=1000 loops=1)
  ->  Seq Scan on b  (cost=0.00..4.00 rows=1 width=4) (actual time=0.010..9.000 rows=1000 loops=1)
Execution Time: 20.100 ms
";
    let error = estimate(Some(20.0), None, plan).unwrap_err();
    assert!(error.what.contains("Aggregate has too many inputs"), "{}", error.what);
}

#[test]
fn a_truncated_line_is_refused_and_a_wrapped_line_is_joined() {
    let append = "Append  (cost=0.00..9.00 rows=2 width=4) (actual time=0.010..20.000 rows=2000 loops=1)
  ->  Seq Scan on a  (cost=0.00..4.00 rows=1 width=4) (actual time=0.010..9.000 rows=1000 loops=1)
  ->  Seq Scan on b  (cost=0.00..4.00 rows=1 width=4) (actual time=0.010..9.000 rows=1000 loops=1)
";
    let log = format!("LOG:  duration: 21.000 ms  plan:\n{append}");
    // The rows show that a whole line is missing.
    let cut = log.trim_end().rsplit_once('\n').unwrap().0;
    assert!(estimate(Some(20.0), None, cut).unwrap_err().what.contains("Append has too few inputs"));
    let figures = |text: &str| {
        let nodes = by_read_cost(20.0, text).nodes.into_iter();
        nodes.map(|node| (node.path, node.title, node.calls, node.corrected_ms)).collect::<Vec<_>>()
    };
    for part in [" (actual", " (cost", " width", " on b"] {
        let at = log.rfind(part).unwrap();
        let wrapped = format!("{}\n{}", &log[..at], &log[at + 1..]);
        assert_eq!(figures(&wrapped), figures(&log), "{wrapped}");
    }
    for text in [&log[..log.len() - 20], &log[..log.len() - 60]] {
        let error = estimate(Some(20.0), None, text).unwrap_err();
        assert!(error.what.contains("a line of the plan is truncated"), "{text}{}", error.what);
    }
}

#[test]
fn times_of_citus_tasks_are_ignored() {
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
    let hidden =
        |plan: &str| by_read_cost(20.0, plan).notes.into_iter().find(|note| note.contains("does not show all tasks"));
    assert_eq!(by_read_cost(20.0, citus).reported_ms, 10.5);
    assert!(hidden(citus).unwrap().contains(": 31 tasks are not in the plan"));
    assert_eq!(hidden(&citus.replace("One of 32", "All")), None);
    let (above, below) = (citus.find("  ->  Task").unwrap(), citus.find("Planning Time: 1").unwrap());
    let jobs = "  ->  MapMergeJob\n        Map Task Count: 32\n        Merge Task Count: 8\n";
    let repartitioned = format!("{}{jobs}{jobs}{}", &citus[..above], &citus[below..])
        .replace("One of 32", "None, not supported for re-partition queries");
    assert!(hidden(&repartitioned).unwrap().contains(": 32 tasks are not in the plan"));
}

#[test]
fn a_direct_modification_on_a_foreign_server_is_one_call() {
    let text = "Update on ft  (cost=0.00..9.00 rows=1 width=4) (actual time=500.000..500.000 rows=0 loops=1)
  ->  Foreign Update on ft  (cost=0.00..9.00 rows=1 width=4) (actual time=500.000..500.000 rows=1000000 loops=1)
Execution Time: 500.100 ms
";
    let capture = by_read_cost(700.0, text).capture.unwrap();
    assert_eq!((capture.calls.low, capture.calls.estimate), (2.0, 2.0));
}

#[test]
fn a_json_plan_after_a_text_plan_is_read() {
    let json = r#"[
  {
    "Plan": {"Node Type": "Seq Scan", "Actual Total Time": 2.0, "Actual Rows": 9, "Actual Loops": 1},
    "Execution Time": 2.1
  }
]
"#;
    let report = by_read_cost(20.0, &format!("{}and with the index:\n{json}", count_plan(10, 5.0)));
    assert_eq!(
        (report.reported_ms, report.notes[0].as_str()),
        (2.1, "the input has 2 plans; this is the last one; --nth N shows another one")
    );
}

#[test]
fn parallel_workers_may_have_shared_one_cpu() {
    let plan = r#"[{"Plan": {"Node Type": "Gather", "Actual Total Time": 1000.0, "Actual Rows": 1, "Actual Loops": 1, "Workers Launched": 2,
        "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "Outer", "Actual Total Time": 900.0, "Actual Rows": 1000000, "Actual Loops": 3}]},
        "Execution Time": 1000.0}]"#;
    let report = estimate(Some(20.0), None, plan).unwrap();
    // If both workers shared one CPU with the leader, it made three million calls. The number of CPUs is not known.
    let call_ns = by_read_cost(20.0, &count_plan(1_000_000, 1000.0)).capture.unwrap().expected_call_ns.unwrap();
    let most = 1000.0 - report.corrected_ms.low;
    assert!((3.0 * call_ns.estimate..3.0 * call_ns.high).contains(&most), "{:?} {call_ns:?}", report.corrected_ms);
}

/// Another run may be faster or slower, but the question is how long this one would have taken.
#[test]
fn only_a_given_time_varies_from_run_to_run() {
    let computed = by_read_cost(20.0, &count_plan(100_000, 16.6));
    let capture = computed.capture.unwrap();
    let overhead = capture.expected_call_ns.unwrap().times(capture.calls.estimate * 1e-6);
    // The error of the calls, and that of the work between the reads.
    let margin = CallCost::new(20.0, None, Some(20.0), false).error_ms(overhead.estimate, 16.6);
    assert!(
        (computed.corrected_ms.high - (16.6 - overhead.estimate + margin)).abs() < 1e-3,
        "{:?} {overhead:?}",
        computed.corrected_ms
    );
    assert!((computed.corrected_ms.estimate - (16.6 - overhead.estimate)).abs() < 1e-3);
    let given = estimate(None, Some(10.0), &count_plan(100_000, 16.6)).unwrap().corrected_ms;
    assert!((given.high - 10.0 / 0.97).abs() < 1e-9, "{given:?}");
}

#[test]
fn an_init_plans_time_is_not_self_time_of_its_user() {
    let plan = "Sort (actual time=30.000..30.000 rows=1 loops=1)
  InitPlan 1 (returns $1)
    ->  Aggregate (actual time=9.000..9.000 rows=1 loops=1)
          ->  Seq Scan on t t_1 (actual time=0.010..8.000 rows=9 loops=1)
  ->  Seq Scan on t (actual time=9.100..29.000 rows=1 loops=1)
        Filter: (a > $1)
Execution Time: 30.000 ms
";
    let self_times =
        |plan: &str| by_read_cost(20.0, plan).nodes.iter().map(|node| node.reported_self_ms).collect::<Vec<_>>();
    assert_eq!(self_times(plan), [1.0, 1.0, 8.0, 20.0]);
    // The next log line is not a condition of the plan's last node.
    let logged = plan.replace("        Filter: (a > $1)\n", "")
        + "2026-11-22 10:00:00 UTC [9] LOG:  execute <unnamed>: SELECT $1\n";
    let nodes = by_read_cost(20.0, &logged).nodes;
    // Then the InitPlan has no known user, and the times of the Sort's inputs add up to more than that of the Sort.
    assert!(nodes[1..].iter().all(|node| node.rank.is_none()) && nodes[3].self_ms.high > 20.0, "{nodes:?}");
    assert!(nodes.iter().map(|node| node.reported_self_ms).sum::<f64>() <= 30.0, "{nodes:?}");
}

/// A worker can run while the leader runs a node above the Gather. Its time is then not a part of the Gather's time.
#[test]
fn one_worker_can_take_longer_than_its_gather() {
    let plan = "WindowAgg (actual time=10.5..363.7 rows=20000 loops=1)
  ->  Gather (actual time=10.2..11.9 rows=20000 loops=1)
        Workers Planned: 2
        Workers Launched: 1
        ->  Parallel Seq Scan on a (actual time=0.2..56.7 rows=20000 loops=1)
Execution Time: 364.6 ms
";
    let report = estimate(Some(25.0), None, plan).unwrap();
    let sum: f64 = report.nodes.iter().map(|node| node.corrected_self_ms).sum();
    assert!(sum <= report.corrected_ms.estimate + 1e-9 && report.nodes[0].corrected_rank == Some(1), "{report:?}");
}

/// The inner time is 1000 ms, with a rounding error of 500 ms. The outer time is known.
#[test]
fn a_rounded_time_takes_nothing_from_an_exact_one() {
    let plan = "Nested Loop (actual time=0.030..1200.000 rows=1000000 loops=1)
  ->  Seq Scan on o (actual time=0.010..500.000 rows=1000000 loops=1)
  ->  Index Scan using k on c (actual time=0.001..0.001 rows=1 loops=1000000)
Execution Time: 1230.000 ms
";
    let report = estimate(Some(25.0), None, plan).unwrap();
    let [join, outer, inner] = &report.nodes[..] else { panic!("{report:?}") };
    assert!((outer.reported_self_ms - 500.0).abs() < 0.01 && outer.corrected_rank.is_some(), "{outer:?}");
    assert!((inner.reported_self_ms - 700.0).abs() < 0.01 && join.reported_self_ms < 0.01, "{inner:?}");
}

/// The leader's calls and those of a worker happen at the same time.
#[test]
fn calls_of_leader_and_workers_need_not_fit_one_after_the_other() {
    let plan = "Finalize Aggregate (actual time=14400.0..14400.0 rows=1 loops=1)
  ->  Gather (actual time=0.5..14000.0 rows=10000000 loops=1)
        Workers Planned: 2
        Workers Launched: 2
        ->  Parallel Seq Scan on a (actual time=0.1..9000.0 rows=5000000 loops=2)
Execution Time: 14500.0 ms
";
    let has_note = |read_ns| {
        let report = estimate(Some(read_ns), None, plan).unwrap();
        report.notes.iter().any(|note| note.starts_with("with this read cost"))
    };
    assert_eq!([600.0, 1000.0].map(has_note), [false, true]);
}
