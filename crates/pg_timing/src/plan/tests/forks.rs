//! Plans as clients frame them, and plans of forks of PostgreSQL, from public reports.

use super::published::{by_read_cost, count_plan, estimate};
use crate::report::ExplainReport;
use std::path::Path;

fn fixture(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans");
    std::fs::read_to_string(directory.join(name)).unwrap()
}

fn paths(report: &ExplainReport) -> Vec<&str> {
    report.nodes.iter().map(|node| node.path.as_str()).collect()
}

#[test]
fn plans_in_a_clients_frame_are_read() {
    let report = by_read_cost(20.0, &fixture("dbeaver-grid.txt"));
    assert_eq!((report.reported_ms, paths(&report)), (30.2, vec!["0", "0.0", "0.0.0", "0.0.1", "0.0.1.0"]));
    for name in ["numbered-lines.txt", "psycopg-rows.txt", "quoted-html.txt"] {
        let report = by_read_cost(20.0, &fixture(name));
        assert_eq!((report.reported_ms, paths(&report)), (30.2, vec!["0", "0.0"]), "{name}");
    }
}

#[test]
fn any_frame_that_all_lines_share_is_removed() {
    let plan = count_plan(1000, 20.0);
    let expected = by_read_cost(20.0, &plan).nodes.len();
    let all = |frame: &dyn Fn(usize, &str) -> String| {
        plan.lines().enumerate().map(|(n, line)| frame(n, line)).collect::<String>()
    };
    for text in [
        all(&|_, line| format!("db_1 | {line}\n")),
        all(&|_, line| format!("# {line}\n")),
        all(&|_, line| format!("NOTICE:  {line}\n")),
        all(&|_, line| format!("psql:a.sql:3: NOTICE:  {line}\n")),
        all(&|n, line| format!("plan.txt:{}:{line}\n", n + 8)),
        all(&|_, line| format!("INFO:  (\"{line}\")\n")),
        format!("[{}]\n", all(&|_, line| format!("{{\"QUERY PLAN\"=>\"{line}\"}}, ")).trim_end_matches(", ")),
        format!("12:00:01 INFO Dao - plan: {plan}"),
        plan.replace('\n', "\r"),
        all(&|_, line| format!("{} ", line.trim())),
        format!("[{}]\n", all(&|_, line| format!("{{'QUERY PLAN': '{line}'}},\n")).trim_end_matches(",\n")),
        format!("[{}]\n", all(&|_, line| format!("{{'QUERY PLAN': '{line}'}}, ")).trim_end_matches(", ")),
        all(&|_, line| format!("║ {line:100} ║\n").replace('║', "|")),
        all(&|n, line| format!("{}. {line}\n", n + 8)),
        all(&|_, line| format!("\"{line}\"\n")),
        all(&|_, line| format!("'{line}',\n")),
        all(&|_, line| format!(" {line:100}+\n")),
        format!("[{}]\n", all(&|_, line| format!("\"{line}\",\n")).trim_end_matches(",\n")),
        format!("x = '{}'\n", plan.trim_end().replace('\n', "\\n")),
        serde_json::to_string(&plan.lines().map(|line| serde_json::json!({"QUERY PLAN": line})).collect::<Vec<_>>())
            .unwrap(),
    ] {
        let report = by_read_cost(20.0, &text);
        assert_eq!((report.reported_ms, report.nodes.len()), (20.0, expected), "{text}");
    }
}

#[test]
fn what_surrounds_an_unreadable_plan_is_named() {
    let words = ["one", "two", "three"].into_iter().cycle();
    let text =
        count_plan(10, 1.0).lines().zip(words).map(|(line, word)| format!("({word}) {line}\n")).collect::<String>();
    let error = estimate(Some(20.0), None, &text).unwrap_err();
    assert!(
        error.what.contains("the first one is: (one) Aggregate") && error.hint.contains("before and after"),
        "{error}"
    );
}

#[test]
fn the_calls_of_all_processes_are_counted() {
    let report = by_read_cost(20.0, &fixture("parallel-count.txt"));
    let scan = report.nodes.last().unwrap();
    assert!((scan.calls - 50_000_004.0).abs() < 2.0, "{}", scan.calls);
    let calls = report.capture.as_ref().unwrap().calls;
    assert!((calls.estimate / 50e6 - 1.0).abs() < 1e-6, "{calls:?}");
    assert!(
        crate::document::text::piped(&crate::document::explain::document(&report))
            .contains("calls       50 M in total")
    );
}

/// PostgreSQL 19 with the TSC: 264 to 268 ms without EXPLAIN, so 24 to 25% is overhead.
#[test]
fn reads_of_the_tsc_overlap_with_other_work() {
    let text = fixture("pg19-tsc-demo.txt");
    let by_read = by_read_cost(11.69, &text);
    assert!(by_read.corrected_ms.low <= 264.0 && 268.0 <= by_read.corrected_ms.high, "{:?}", by_read.corrected_ms);
    let both = estimate(Some(11.69), Some(268.0), &text).unwrap();
    let screen = crate::document::text::piped(&crate::document::explain::document(&both));
    assert!((0.235..0.255).contains(&both.overhead_share) && !screen.contains("contradicts"), "{screen}");
}

#[test]
fn inputs_that_contradict_each_other_widen_the_interval() {
    let report = estimate(Some(723.0), Some(110.0), &count_plan(100_000, 115.9)).unwrap();
    let corrected = report.corrected_ms;
    assert!(corrected.low < 20.0 && corrected.high > 110.0, "{corrected:?}");
    let screen = crate::document::text::piped(&crate::document::explain::document(&report))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(screen.contains("contradicts the expected cost of the calls: the interval covers both"), "{screen}");
}

#[test]
fn the_time_of_a_cte_belongs_to_all_of_its_readers() {
    let report = by_read_cost(20.0, &fixture("cte-two-readers.txt"));
    let readers: Vec<_> = report.nodes.iter().filter(|node| node.kind == "CTE Scan").collect();
    for reader in &readers {
        assert_eq!((reader.rank, reader.corrected_rank), (None, None));
        assert!(reader.self_ms.low == 0.0 && (90.0..110.0).contains(&reader.self_ms.high), "{:?}", reader.self_ms);
    }
    let first = report.nodes.iter().find(|node| node.corrected_rank == Some(1)).unwrap();
    assert_eq!(first.title, "Parallel Index Scan using orders_customer_idx on orders");
    let sum: f64 = report.nodes.iter().map(|node| node.reported_self_ms).sum();
    assert!(sum <= report.reported_ms && sum > 0.99 * report.reported_ms, "{sum}");
}

#[test]
fn plans_of_forks_of_postgresql_are_read() {
    let note = |report: &ExplainReport, part: &str| report.notes.iter().any(|note| note.contains(part));
    let vector = by_read_cost(20.0, &fixture("timescale-vectoragg.txt"));
    assert!(vector.overhead_share < 0.02 && vector.corrected_ms.high > 92.5, "{:?}", vector.corrected_ms);
    assert!(note(&vector, "Custom Scan (VectorAgg)"), "{:?}", vector.notes);
    let two_tasks = by_read_cost(20.0, &fixture("citus-two-tasks.txt"));
    assert_eq!((paths(&two_tasks)[3..].to_vec(), two_tasks.reported_ms), (vec!["0.0.0.0", "0.0.1", "0.0.1.0"], 664.0));
    assert_eq!(two_tasks.corrected_ms.high, 664.0, "the tasks may have no overhead");
    assert_eq!(two_tasks.nodes[2].corrected_rank, None, "the tasks ran in parallel");
    let subplan = by_read_cost(20.0, &fixture("citus-subplan.txt"));
    assert_eq!((subplan.reported_ms, paths(&subplan)), (25991.113, vec!["0", "0.0", "0.0.0", "0.1", "0.1.0", "0.1.1"]));
    assert!(subplan.nodes[1].title.starts_with("Distributed Subplan 1_1: Custom Scan"), "{}", subplan.nodes[1].title);
    assert!(note(&subplan, "31 tasks are not in the plan"), "{:?}", subplan.notes);
    let motion = by_read_cost(20.0, &fixture("greenplum-motion.txt"));
    assert_eq!((motion.reported_ms, motion.nodes[0].kind.as_str(), motion.nodes.len()), (0.964, "Gather Motion", 3));
    assert!(note(&motion, "rows of Gather Motion, and"), "{:?}", motion.notes);
    let yugabyte =
        "YB Batched Nested Loop Join  (cost=0.00..9.00 rows=1 width=8) (actual time=1.000..9.000 rows=10 loops=1)
  Join Filter: (a.i = b.i)
  ->  YB Seq Scan on a  (cost=0.00..4.00 rows=1 width=4) (actual time=0.500..1.000 rows=10 loops=1)
        Storage Table Read Requests: 1
  ->  Index Scan using b_i on b  (cost=0.00..4.00 rows=1 width=4) (actual time=1.000..2.000 rows=10 loops=1)
Execution Time: 9.500 ms
";
    assert_eq!(paths(&by_read_cost(20.0, yugabyte)), ["0", "0.0", "0.1"]);
}

/// PostgreSQL 19 prints these lines with EXPLAIN (IO).
#[test]
fn lines_of_io_are_ordinary_properties() {
    let plan = count_plan(10, 1.0).replacen(
        "Planning",
        "        Prefetch: avg=89.53 max=127 capacity=128\n        I/O: stalls=19 size=13.02 inprogress=6.63\nPlanning",
        1,
    );
    assert_eq!(by_read_cost(20.0, &plan).nodes.len(), 2);
}
