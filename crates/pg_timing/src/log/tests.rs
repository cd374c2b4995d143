//! Whole logs, from their bytes to the report.

use super::*;
use crate::plan::ServerClock;
use crate::plan::{ClockOf, Explained};
use crate::report::Range;
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
        progress: &|_| {},
    })
}

/// Returns an entry.
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
fn the_progress_is_shown_while_there_are_no_results() {
    let shown = std::cell::Cell::new(0.0);
    let text = "LOG:  checkpoint starting\n".repeat(100_000);
    assert!(with_log(&text, |log| Log { progress: &|done| shown.set(done), ..log }.totals()).is_err());
    assert!(shown.get() > 0.5, "{shown:?}");
}

#[test]
fn executions_of_a_statement_are_added_up() {
    let log = entry("t", 1000, 1.0) + &entry("u", 1000, 9.0) + &entry("t", 2000, 2.0);
    let report = totals(&log);
    assert_eq!((report.plans, report.total.runs, report.total.reported_ms), (3, 3, 12.0));
    let [t, u] = report.statements.as_slice() else { panic!("{report:?}") };
    assert_eq!(t.statement.as_deref(), Some("select count(*) from t where a > ?"));
    assert_eq!((t.total.runs, t.total.reported_ms, t.slowest.line), (2, 3.0, 9));
    assert_eq!(u.total.runs, 1);
    // The statement with more calls lost more time, although the other one took longer.
    assert!(t.total.overhead_ms().estimate > u.total.overhead_ms().estimate, "{report:?}");
    let sum = t.total.corrected_ms.estimate + u.total.corrected_ms.estimate;
    assert!((report.total.corrected_ms.estimate - sum).abs() < 1e-9);
    // Errors of different statements are independent, so the sum is known better than each part.
    let half = |range: Range| range.margin() / range.estimate;
    assert!(half(report.total.corrected_ms) < half(t.total.corrected_ms), "{report:?}");
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
    let place = |report: &ExplainReport| report.capture.as_ref().unwrap().place.as_ref().unwrap().line;
    assert_eq!(slowest.reports.iter().map(place).collect::<Vec<_>>(), [7, 11]);
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

/// What the user gave belongs to the plan that is shown, and says nothing about the others.
#[test]
fn a_contradiction_with_the_shown_plan_is_an_error() {
    let log = entry("t", 10, 2000.0) + &entry("u", 10, 300.0);
    let with_plain = |text: &str, plain_ms| {
        let text = text.to_string();
        move |nth: Option<usize>| {
            with_log(&text, |log| {
                let log = Log { inputs: Inputs { clock: None, plain_ms: Some(plain_ms), document: None }, ..log };
                match nth {
                    Some(nth) => log.nth(nth),
                    None => log.last(),
                }
            })
        }
    };
    let read = with_plain(&log, 500.0);
    for nth in [None, Some(2)] {
        let error = read(nth).map(|plans| plans.reports.len()).unwrap_err();
        assert!(error.what.contains("--plain-ms says 500 ms without EXPLAIN, but EXPLAIN ANALYZE took only 300 ms"));
        assert!(error.hint.contains("another run"), "{error}");
    }
    let reversed = entry("u", 10, 300.0) + &entry("t", 10, 2000.0);
    for plans in [read(Some(1)), with_plain(&reversed, 500.0)(None), with_plain(&reversed, 500.0)(Some(2))] {
        let Plans { reports, gaps } = plans.unwrap();
        assert_eq!((reports[0].reported_ms, reports[0].nodes.len()), (2000.0, 2));
        assert_eq!((gaps.damaged_messages, gaps.skipped.len()), (0, 0));
    }
    // A damaged plan after it is skipped.
    let damaged = log + "LOG:  duration: 7.000 ms  plan:\n\tdamaged\n";
    assert!(with_plain(&damaged, 500.0)(None).is_err_and(|error| error.what.contains("took only 300 ms")));
    assert_eq!(with_plain(&damaged, 200.0)(None).unwrap().reports[0].reported_ms, 300.0);
    // The reads of 10 000 calls take longer than 0.01 ms.
    let slow = entry("t", 10_000, 0.01) + &entry("u", 10, 9.0);
    let Plans { reports, gaps } = with_log(&slow, |log| log.slowest(1)).unwrap();
    assert_eq!((reports[0].reported_ms, gaps.damaged_messages, gaps.notes.len()), (9.0, 1, 0));
    assert!(gaps.skipped[0].reason.contains("take at least"), "{:?}", gaps.skipped);
    assert!(with_log(&entry("t", 10_000, 0.01), |log| log.slowest(1)).is_err());
    assert_eq!(totals(&slow).skipped.len(), 1);
}

#[test]
fn a_log_without_a_usable_plan_is_an_error() {
    let what = |text: &str| with_log(text, |log| log.totals()).unwrap_err().what;
    assert_eq!(what("LOG:  checkpoint starting\n"), "there is no plan in the input");
    let untimed = "LOG:  duration: 7.000 ms  plan:\n\tResult (actual rows=1 loops=1)\n";
    assert!(what(untimed).starts_with("the plan's nodes were not timed"));
    assert!(what(&untimed.repeat(3)).starts_with("none of the 3 plans can be used; 3 of them: the plan's nodes"));
}

#[test]
fn errors_of_one_reason_are_counted_together() {
    let mut skipped = Vec::new();
    for (line, why) in [
        (5, Unusable::Impossible("a takes 5 ms".into(), "a")),
        (6, Unusable::NotTimed),
        (7, Unusable::Impossible("a takes 7 ms".into(), "a")),
        (8, Unusable::FastTimed),
        (9, Unusable::Impossible("a lacks inputs".into(), "b")),
    ] {
        skip(&mut skipped, LogPlace { file: "log".into(), line }, why);
    }
    let found: Vec<_> = skipped.iter().map(|s| (s.plans, s.first.line, s.is_damaged)).collect();
    assert_eq!(found, [(2, 5, true), (1, 6, false), (1, 8, false), (1, 9, true)]);
}

/// psql shows what a function has printed.
#[test]
fn a_plan_in_notices_is_pasted_text() {
    for prefix in ["NOTICE:  ", "psql:a.sql:3: NOTICE:  "] {
        let lines = ["Result (actual time=0.1..5.0 rows=1 loops=1)", "Execution Time: 7.000 ms"];
        let text: String = lines.iter().map(|line| format!("{prefix}{line}\n")).collect();
        let Plans { reports, .. } = with_log(&text, |log| log.slowest(1)).unwrap();
        assert_eq!(reports[0].reported_ms, 7.0, "{prefix}");
    }
}

#[test]
fn equally_frequent_reasons_at_one_place_keep_their_order() {
    let mut skipped = Vec::new();
    for why in [Unusable::RootMissing, Unusable::NotExecuted] {
        skip(&mut skipped, LogPlace { file: "log".into(), line: 1 }, why);
    }
    assert!(none_is_usable(2, skipped).what.contains("the beginning of the plan is missing"));
}

/// Returns the number of plans with figures, and of damaged plans.
fn plans_of_files(texts: &[&str]) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let paths = texts.iter().enumerate().map(|(number, text)| {
        let path = dir.path().join(number.to_string());
        std::fs::write(&path, text).unwrap();
        path
    });
    let (stop, clock): (_, &ClockOf) = (AtomicBool::new(false), &clock);
    let inputs = Inputs { clock: Some(clock), plain_ms: None, document: None };
    let log = Log { sources: Sources::new(paths.collect()), inputs, stop: &stop, progress: &|_| {} };
    let report = log.totals().unwrap();
    (report.total.runs, report.skipped.iter().filter(|skipped| skipped.is_damaged).map(|skipped| skipped.plans).sum())
}

/// The end of a plan in any format, from any of its lines.
#[test]
fn a_log_that_begins_within_a_plan_is_damaged() {
    let whole = "2026-11-24 [7] LOG:  x\n".to_string() + &entry("t", 9, 1.0);
    let lines = |text: &str, tab: &str| text.lines().map(|line| format!("{tab}{line}\n")).collect::<Vec<_>>();
    let text = "  ->  Hash Join  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n        Hash Cond: (a = b)\n        Buffers: shared hit=7\n";
    let json = "    \"Node Type\": \"Sort\",\n    \"Actual Total Time\": 2.500,\n    \"Actual Loops\": 1,\n    \"Sort Method\": \"quicksort\",\n    \"Shared Hit Blocks\": 7\n  }\n}\n";
    let yaml = "  Actual Loops: 1\n  Sort Method: \"quicksort\"\n  Shared Hit Blocks: 7\n";
    let xml =
        "    <Actual-Loops>1</Actual-Loops>\n    <Shared-Hit-Blocks>7</Shared-Hit-Blocks>\n  </Plan>\n</explain>\n";
    for rest in [text, json, yaml, xml] {
        let rest = lines(rest, "\t");
        let last =
            rest.iter().rposition(|line| line.contains("Hit Blocks") || line.contains("hit=") || line.contains("Hit-"));
        for first in 0..=last.unwrap() {
            let rest = rest[first..].concat();
            assert_eq!(plans_of_files(&[&(rest.clone() + &whole)]), (1, 1), "{rest}");
        }
    }
    // A CSV log has no tabs, and doubles quotation marks.
    let end = "\",,,,,\"SQL function\",,,,\"psql\",\"client backend\",,7\n";
    let plan =
        "duration: 9.000 ms  plan:\nResult  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)";
    let record =
        format!("2026-11-24 10:00:00 UTC,,,7,,1,1,,,,0,LOG,00000,\"{plan}\",,,,,,,,,\"\",\"client backend\",,0\n");
    for rest in [text.trim_end(), &json.replace('"', "\"\"")] {
        let rest = rest.to_string() + end;
        assert_eq!(plans_of_files(&[&(rest.clone() + &record)]), (1, 1), "{rest}");
    }
    // The rest of another entry, and text of another kind.
    for rest in ["\tselect 1\n\tfrom t\n", "\tFilter: 7 rows=1\n", "Plan of the week: rows=1\n"] {
        assert_eq!(plans_of_files(&[&(rest.to_string() + &whole)]), (1, 0), "{rest}");
    }
}

#[test]
fn a_log_that_is_rotated_within_a_plan_is_damaged() {
    let other = "2026-11-24 [7] LOG:  x\n";
    let container = |text: &str| text.lines().map(|line| format!("db-1  | {line}\n")).collect::<String>();
    for form in [&|text: &str| text.to_string() as _, &container as &dyn Fn(&str) -> String] {
        let [first, second] =
            [entry("t", 9, 1.0), entry("u", 9, 1.0)].map(|entry| entry.replace("Aggregate", "Append"));
        let half = first.len();
        let first = first + "\t  ->  Seq Scan on u (actual time=0.010..0.100 rows=9 loops=1)\n";
        let [begin, end] = [&first[..half], &first[half..]].map(form);
        let [second, other] = [&second, other].map(form);
        // The last line of the first file is one of the plan.
        assert_eq!(plans_of_files(&[&(second.clone() + &begin), &(end.clone() + &second)]), (2, 1));
        assert_eq!(plans_of_files(&[&(second.clone() + &begin), &end]), (1, 1));
        // The file after it does not begin within a plan.
        assert_eq!(plans_of_files(&[&form(&first), &second]), (2, 0));
        assert_eq!(plans_of_files(&[&form(&first), &(other.clone() + &second)]), (2, 0));
        assert_eq!(plans_of_files(&[&form(&first), "", &second]), (2, 0));
        // The plan is not the end of the first file.
        assert_eq!(plans_of_files(&[&(form(&first) + &other), &(end.clone() + &second)]), (2, 1));
    }
}

#[test]
fn statements_beyond_the_limit_are_one_row() {
    let log: String = (0..5100).map(|n| entry(&format!("t{n}"), 10, 1.0)).collect();
    let report = totals(&log);
    assert_eq!(report.total.runs, 5100);
    let rest = report.statements.iter().find(|statement| statement.statement.is_none()).unwrap();
    assert_eq!((report.statements.len(), rest.total.runs), (5001, 100));
    // The first ones of the log have rows.
    assert!(
        report.statements.iter().all(|statement| !statement.statement.as_ref().is_some_and(|s| s.contains("t5000")))
    );
    let note = "only the first 5 000 statements of the log have their own rows; the other 100 plans are one row";
    assert_eq!(report.notes, [note]);
}

proptest! {
    /// The number of threads changes nothing, also if limits are reached.
    #[test]
    fn one_thread_finds_what_several_find(
        plans in prop::collection::vec((0..4u32, 1..3000u32, 1..900u32, 0..4usize), 1..60),
        repeated in 1..40usize,
    ) {
        let contexts = ["", "", "PL/pgSQL function f() line 3", "SQL function \"g\" statement 1\n\tPL/pgSQL function f() line 3"];
        let log: String = plans.iter().map(|(t, rows, us, context)| {
            let entry = entry(&format!("t{t}"), *rows, f64::from(rows * 100 + us) / 1000.0);
            let context = contexts[*context];
            let command = ["SELECT", "CALL"][usize::from(us % 7 == 0)];
            let context = if context.is_empty() { "".into() } else { format!("[7] {command} CONTEXT:  {context}\n") };
            let failure = if us % 11 == 0 { "[7] SELECT ERROR:  no\n" } else { "" };
            format!("[7] {command} {entry}{context}{failure}")
        }).collect();
        let log = log.repeat(repeated);
        let report = |threads| with_log(&log, |log| log.totals_with(threads)).unwrap();
        let (one, several) = (report(1), report(3));
        prop_assert_eq!((one.total.runs + one.total.nested_runs) as usize, plans.len() * repeated);
        let Range { low, estimate, high } = one.total.corrected_ms;
        prop_assert!(0.0 <= low && low <= estimate && estimate <= high && high <= one.total.reported_ms);
        let json = |report: &LogReport| serde_json::to_value(report).map(|mut json| { json["files"].take(); json.to_string() }).unwrap();
        let without_name = |text: String, report: &LogReport| text.replace(&report.files[0], "FILE");
        prop_assert_eq!(without_name(json(&one), &one), without_name(json(&several), &several));
    }
}

#[test]
fn a_log_with_only_nested_plans_is_not_determined() {
    let nested =
        entry("t", 1000, 10.0) + "CONTEXT:  SQL statement \"select 1\"\n\tPL/pgSQL function pr() line 1 at PERFORM\n";
    let report = totals(&nested);
    assert_eq!((report.total.runs, report.total.nested_runs), (0, 1));
    let screen = crate::document::text::piped(&crate::document::log::document(&report));
    assert!(screen.starts_with("The overhead of timing is not determined"), "{screen}");
}

/// Syslog numbers the parts of a message, and its context is one of them.
#[test]
fn the_parts_of_a_nested_plan_in_syslog_are_complete() {
    let context = "CONTEXT:  SQL statement \"select 1\"\n\tPL/pgSQL function f() line 1 at PERFORM\n";
    let lines = entry("t", 1000, 10.0) + context + &entry("u", 1000, 20.0);
    let (mut message, mut part) = (0, 0);
    let log: String = lines
        .lines()
        .map(|line| {
            let (text, is_new) = match line.strip_prefix('\t') {
                Some(rest) => (format!("#011{rest}"), false),
                None => (format!("2026-11-28 21:24:06.179 UTC [7] {line}"), line.starts_with("LOG")),
            };
            (message, part) = if is_new { (message + 1, 1) } else { (message, part + 1) };
            format!("Nov 28 21:24:05 db postgres[7]: [{message}-{part}] {text}\n")
        })
        .collect();
    let report = totals(&log);
    assert_eq!((report.plans, report.skipped.len()), (2, 0), "{report:?}\n{log}");
    assert_eq!((report.total.runs, report.total.nested_runs), (1, 1));
}
