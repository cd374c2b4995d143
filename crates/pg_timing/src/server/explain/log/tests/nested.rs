//! Plans of statements within functions.

use super::*;

/// Returns the entry of a nested plan, or of a plan of the client.
fn nested(table: &str, ms: f64, context: &str) -> String {
    nested_in("SELECT", table, ms, context)
}

/// The same with the client's command, or with more of the prefix.
fn nested_in(command: &str, table: &str, ms: f64, context: &str) -> String {
    let context = if context.is_empty() { "".into() } else { format!("[7] {command} CONTEXT:  {context}\n") };
    format!("[7] {command} {}{context}", entry(table, (ms * 1000.0) as u32, ms))
}

fn outer_context() -> &'static str {
    "SQL statement \"select\"\n\tPL/pgSQL function p() line 3"
}

/// The figures do not depend on what else log_line_prefix has.
#[test]
fn the_process_is_found_in_any_prefix() {
    let log = nested("u", 3.0, outer_context()) + &nested("t", 9.0, "");
    let of_prefix = |prefix: &str| {
        let mut lines = 0;
        let number = |line: &str| {
            lines += 1;
            line.replacen("[7] ", &prefix.replace("%l", &lines.to_string()), 1) + "\n"
        };
        let report = totals(&log.lines().map(number).collect::<String>());
        let has_called = report.statements.iter().any(|statement| statement.called_overhead_ms.is_some());
        (
            report.total.reported_ms,
            report.nested_ms,
            has_called,
            report.notes.iter().any(|note| note.contains("add %c")),
        )
    };
    for prefix in ["[%l] [7] ", "[00000] [7] ", "[7] [%l] ", "[7-%l] ", "7 ", "p=7 ", "%l 7 ", "PID: 7 [%l] "] {
        assert_eq!(of_prefix(prefix), (9.0, 3.0, true, false), "{prefix}");
    }
    // Nothing shows which of the numbers is the process.
    for prefix in ["[%l] ", "[7] [8] ", "7 8 "] {
        assert_eq!(of_prefix(prefix), (9.0, 3.0, false, true), "{prefix}");
    }
}

#[test]
fn the_time_of_nested_statements_counts_once() {
    let [inner, outer] =
        ["SQL function \"g\" statement 1\n\tPL/pgSQL function f() line 3", "PL/pgSQL function f() line 3"];
    let log = nested("inner", 1.0, inner)
        + &nested("outer", 3.0, outer)
        + &nested("outer", 2.0, outer)
        + &nested("t", 9.0, "");
    let report = totals(&log);
    assert_eq!((report.total.reported_ms, report.nested_ms), (9.0, 6.0));
    assert_eq!((report.total.runs, report.total.nested_runs), (4, 3));
    let of = |table: &str| {
        let is_of =
            |statement: &&LoggedStatement| statement.statement.as_ref().unwrap().contains(&format!("from {table} "));
        report.statements.iter().find(is_of).unwrap().clone()
    };
    let [inner, outer, client] = ["inner", "outer", "t"].map(of);
    assert_eq!([&inner, &outer, &client].map(|statement| statement.total.nested_runs), [1, 2, 0]);
    // The overhead of a single plan is that of its own calls. The row of a caller also includes the statements that it executed.
    let alone = |ms: f64| totals(&nested("t", ms, "")).total.overhead_ms().estimate;
    let called = |statement: &LoggedStatement| statement.called_overhead_ms.map_or(0.0, |range| range.estimate);
    for (statement, own, expected) in [
        (&inner, alone(1.0), 0.0),
        (&outer, alone(3.0) + alone(2.0), alone(1.0)),
        (&client, alone(9.0), alone(3.0) + alone(2.0) + alone(1.0)),
    ] {
        assert!((called(statement) - expected).abs() < 1e-9, "{statement:?}");
        assert!((statement.total.overhead_ms().estimate - own - expected).abs() < 1e-9, "{statement:?}");
    }
    let sum = [1.0, 2.0, 3.0, 9.0].map(alone).iter().sum::<f64>();
    assert!((report.total.overhead_ms().estimate - sum).abs() < 1e-9, "{report:?}");
    assert!((client.total.overhead_ms().estimate - sum).abs() < 1e-9, "{client:?}");
    // These have no caller in the log.
    assert_eq!(totals(&(nested("t", 3.0, outer_context()) + &nested("t", 2.0, ""))).total.reported_ms, 5.0);
}

#[test]
fn a_statement_without_a_plan_leaves_its_plans_to_no_other() {
    const TRIGGER: &str = "SQL statement \"x\"\n\tPL/pgSQL function trigger() line 1 at PERFORM";
    let copy = format!("{TRIGGER}\n\tCOPY c, line 1: \"1\"");
    let failure = "[7] SELECT ERROR:  no\n[7] SELECT STATEMENT:  select 1\n";
    let next = |prefix: &str| nested_in(prefix, "t", 9.0, "");
    for (log, name) in [
        (nested("u", 3.0, TRIGGER) + failure + &next("SELECT"), "failed"),
        (nested_in("", "u", 3.0, &copy) + &next(""), "COPY with a trigger"),
        (nested_in("COPY", "u", 3.0, TRIGGER) + &next("SELECT"), "COPY with a trigger at its end"),
        (nested_in("ALTER TABLE", "u", 3.0, TRIGGER) + &next("SELECT"), "ALTER TABLE"),
        (nested_in("COMMIT", "u", 3.0, TRIGGER) + &next("COMMIT"), "a deferred trigger"),
        (nested_in("SELECT 3/7", "u", 3.0, TRIGGER) + &next("SELECT 3/8"), "another transaction"),
        (nested_in("2026-11-25 07:40:01.000", "u", 3.0, TRIGGER) + &next("2026-11-25 07:40:02.000"), "long before"),
    ] {
        let report = totals(&log);
        assert_eq!((report.total.reported_ms, report.nested_ms), (12.0, 0.0), "{name}");
        assert!(report.statements.iter().all(|statement| statement.called_overhead_ms.is_none()), "{name}");
        assert!(report.notes.iter().all(|note| !note.contains("not certain")), "{name}: {:?}", report.notes);
    }
    // Nothing shows whether a trigger belongs to the next statement.
    let report = totals(&(nested_in("", "u", 3.0, TRIGGER) + &next("")));
    assert_eq!((report.total.reported_ms, report.nested_ms), (12.0, 0.0));
    let note = format!("nested plans whose caller is not certain: 1 (first: {} line 1)", report.files[0]);
    assert!(report.notes.iter().any(|text| text.starts_with(&note)), "{:?}", report.notes);
}

#[test]
fn the_caller_of_a_plan_without_a_process_is_not_known() {
    let without_process = |log: String| log.replace("[7] ", "");
    let log = without_process(nested("u", 3.0, outer_context()) + &nested("t", 9.0, ""));
    let report = totals(&log);
    assert_eq!((report.total.reported_ms, report.nested_ms, report.total.nested_runs), (9.0, 3.0, 1));
    assert!(report.statements.iter().all(|statement| statement.called_overhead_ms.is_none()), "{report:?}");
    assert!(report.notes.iter().any(|note| note.contains("add %c")), "{report:?}");
}

/// --all, --slowest, --nth and --format jsonl find the same nested plans.
#[test]
fn single_plans_have_the_overhead_of_nested_plans() {
    let log = nested("inner", 1.0, "SQL function \"g\"\n\tPL/pgSQL function f() line 3")
        + &nested("outer", 3.0, "PL/pgSQL function f() line 3")
        + &nested("t", 9.0, "")
        + &nested("t", 8.0, "");
    let called = |report: &ExplainReport| report.capture.as_ref().unwrap().called_overhead_ms;
    let mut each = Vec::new();
    let gaps = with_log(&log, |log| {
        log.each(&mut |report| {
            each.push(called(&report));
            true
        })
    });
    assert_eq!(gaps.unwrap().plans, 4);
    let row =
        totals(&log).statements.into_iter().find(|row| row.statement.as_ref().unwrap().contains("from t ")).unwrap();
    let [None, Some(outer), Some(client), None] = each[..] else { panic!("{each:?}") };
    assert!(outer.estimate > 0.0 && outer.estimate < client.estimate, "{outer:?} {client:?}");
    assert_eq!(row.called_overhead_ms, Some(client));
    for most in [1, 2, 9] {
        let slowest = with_log(&log, |log| log.slowest(most)).unwrap().reports;
        let expected = [Some(client), None, Some(outer), None];
        assert_eq!(slowest.iter().map(called).collect::<Vec<_>>(), expected[..most.min(4)]);
    }
    for (nth, expected) in each.iter().enumerate() {
        assert_eq!(called(&with_log(&log, |log| log.nth(nth + 1)).unwrap().reports[0]), *expected);
    }
    // Nothing shows that a trigger belongs to a plan.
    let log = nested_in("", "u", 1.0, "PL/pgSQL function trigger() line 3") + &nested_in("", "t", 9.0, "");
    let report = with_log(&log, |log| log.nth(2)).unwrap().reports.remove(0);
    assert!(called(&report).is_none() && report.notes[0].contains("not certainly within it: 1."), "{:?}", report.notes);
}

#[test]
fn a_plan_that_cannot_be_analyzed_ends_its_statement() {
    let untimed = "[7] LOG:  duration: 4.000 ms  plan:\n\tQuery Text: select 1\n\tResult (actual rows=1 loops=1)\n";
    let report = totals(&(nested("u", 3.0, outer_context()) + untimed + &nested("t", 9.0, "")));
    assert_eq!((report.total.reported_ms, report.nested_ms), (12.0, 0.0));
}
