//! Whole logs, from their bytes to the report.

use super::*;
use crate::report::Range;
use crate::server::explain::captured::ServerClock;
use crate::server::explain::{ClockOf, Explained};
use proptest::prelude::*;
use std::io::Write;

fn clock(_: &Explained) -> Result<ServerClock, Error> {
    Ok(ServerClock { read_ns: 20.0, timed_call_ns: None, system_read_ns: Some(20.0), cpus: None, note: None })
}

/// Calls `read` with a log of this text.
fn with_log<T>(text: &str, read: impl FnOnce(Log) -> T) -> T {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let (stop, clock): (_, &ClockOf) = (AtomicBool::new(false), &clock);
    read(Log {
        sources: Sources::new(vec![file.path().into()]),
        inputs: Inputs { clock: Some(clock), plain_ms: None, document: None },
        stop: &stop,
        progress: &mut |_| {},
    })
}

/// Returns an entry. The scan's self time is larger with timing, and the aggregate's without.
fn entry(table: &str, rows: u32, ms: f64) -> String {
    format!(
        "LOG:  duration: {ms:.3} ms  plan:\n\tQuery Text: select count(*) from {table} where a > {rows}\n\tAggregate (actual time={ms:.3}..{ms:.3} rows=1 loops=1)\n\t  ->  Seq Scan on {table} (actual time=0.010..{:.3} rows={rows} loops=1)\n",
        ms * 0.52
    )
}

fn totals(text: &str) -> LogReport {
    with_log(text, |log| log.totals()).unwrap()
}

#[test]
fn executions_of_a_statement_are_added_up() {
    let log = entry("t", 1000, 1.0) + &entry("u", 1000, 9.0) + &entry("t", 2000, 2.0);
    let report = totals(&log);
    assert_eq!((report.plans, report.total.runs, report.total.reported_ms), (3, 3, 12.0));
    let [t, u] = report.statements.as_slice() else { panic!("{report:?}") };
    assert_eq!(t.statement.as_deref(), Some("select count(*) from t where a > ?"));
    assert_eq!((t.total.runs, t.total.reported_ms, t.slowest.line), (2, 3.0, 9));
    assert_eq!((u.total.runs, u.nodes, u.plan_shapes), (1, 2, 1));
    // The statement with more calls lost more time, although the other one took longer.
    assert!(t.total.overhead_ms().estimate > u.total.overhead_ms().estimate, "{report:?}");
    let sum = t.total.corrected_ms.estimate + u.total.corrected_ms.estimate;
    assert!((report.total.corrected_ms.estimate - sum).abs() < 1e-9);
    // Errors of different statements are independent, so the sum is known better than each part.
    let half = |range: Range| range.half_width() / range.estimate;
    assert!(half(report.total.corrected_ms) < half(t.total.corrected_ms), "{report:?}");
}

#[test]
fn nodes_with_another_rank_are_shown() {
    // Half of the scan's calls fall into the aggregate's self time, so both lose the same: the order stays.
    assert_eq!(totals(&entry("t", 10_000, 2.0)).statements[0].rank_changes, []);
    // The calls of the sort cost 1.9 ms: half of it falls into the aggregate's time, and nothing into the scan's.
    let log = "LOG:  duration: 10.000 ms  plan:\n\tQuery Text: select 1\n\tAggregate (actual time=10.000..10.000 rows=1 loops=1)\n\t  ->  Sort (actual time=4.000..6.500 rows=40000 loops=1)\n\t        ->  Seq Scan on t (actual time=0.010..3.400 rows=10 loops=1)\n";
    let changes = &totals(log).statements[0].rank_changes;
    let ranks: Vec<_> = changes.iter().map(|c| (c.title.as_str(), c.rank, c.corrected_rank)).collect();
    assert_eq!(ranks, [("Seq Scan on t", 2, 1), ("Aggregate", 1, 2)], "{changes:?}");
}

#[test]
fn single_plans_have_their_numbers() {
    let log = entry("t", 10, 1.0)
        + "LOG:  duration: 7.000 ms  plan:\n\tdamaged\n"
        + &entry("u", 10, 9.0)
        + &entry("v", 10, 9.0);
    let slowest = with_log(&log, |log| log.slowest(2)).unwrap();
    let numbers = |plans: &Plans| -> Vec<_> {
        plans.reports.iter().map(|r| r.capture.as_ref().map(|c| (c.taken, c.plans, r.reported_ms)).unwrap()).collect()
    };
    assert_eq!(numbers(&slowest), [(3, 4, 9.0), (4, 4, 9.0)]);
    assert_eq!((slowest.gaps.skipped.len(), slowest.gaps.skipped[0].first.line), (1, 5));
    assert_eq!(numbers(&with_log(&log, |log| log.nth(3)).unwrap()), [(3, 4, 9.0)]);
    assert!(with_log(&log, |log| log.nth(2)).is_err_and(|error| error.what.contains("no readable plan")));
    assert!(with_log(&log, |log| log.nth(5)).is_err_and(|error| error.what.contains("the input has 4")));
    let mut all = Vec::new();
    let gaps = with_log(&log, |log| {
        log.each(&mut |report| {
            all.push(report.capture.map(|capture| capture.taken));
            true
        })
    });
    assert_eq!((all, gaps.unwrap().plans), (vec![Some(1), Some(3), Some(4)], 4));
}

#[test]
fn a_log_without_a_usable_plan_is_an_error() {
    let what = |text: &str| with_log(text, |log| log.totals()).unwrap_err().what;
    assert_eq!(what("LOG:  checkpoint starting\n"), "there is no plan in the input");
    let untimed = "LOG:  duration: 7.000 ms  plan:\n\tResult (actual rows=1 loops=1)\n";
    assert!(what(untimed).starts_with("the plan was taken with TIMING OFF"));
    assert!(what(&untimed.repeat(3)).starts_with("none of the 3 plans can be used; 3 of them: the plan was taken"));
}

#[test]
fn statements_beyond_the_limit_are_one_row() {
    let log: String = (0..5100).map(|n| entry(&format!("t{n}"), 10, 1.0)).collect();
    let report = totals(&log);
    assert_eq!(report.total.runs, 5100);
    let rest = report.statements.iter().find(|statement| statement.statement.is_none()).unwrap();
    assert!(report.statements.len() <= 5001 && rest.total.runs >= 99, "{}", report.statements.len());
}

proptest! {
    /// The number of threads changes nothing but the last digits.
    #[test]
    fn one_thread_finds_what_several_find(plans in prop::collection::vec((0..4u32, 1..3000u32, 1..900u32), 1..60)) {
        let log: String = plans.iter().map(|(t, rows, us)| entry(&format!("t{t}"), *rows, f64::from(rows * 100 + us) / 1000.0)).collect();
        let report = |threads: usize| {
            with_log(&log, |log| {
                let collectors = (0..threads).map(|_| Totals::new(&log.inputs)).collect();
                let outcome = pipeline::read(&log.sources, collectors, log.stop, log.progress);
                report::report(&log.sources, outcome)
            })
        };
        let (one, several) = (report(1), report(3));
        prop_assert_eq!(one.total.runs, plans.len() as u64);
        prop_assert_eq!(one.statements.len(), several.statements.len());
        let Range { low, estimate, high } = one.total.corrected_ms;
        prop_assert!(0.0 <= low && low <= estimate && estimate <= high && high <= one.total.reported_ms);
        for (a, b) in one.statements.iter().zip(&several.statements) {
            prop_assert_eq!((&a.statement, a.total.runs, a.slowest.line), (&b.statement, b.total.runs, b.slowest.line));
            prop_assert!((a.total.corrected_ms.estimate - b.total.corrected_ms.estimate).abs() < 1e-6);
        }
    }
}
