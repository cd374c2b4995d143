use super::super::evidence::Evidence;
use super::*;

const CLIENT: &str = "";

/// Receives (context, time) of plans that each have an overhead of 10%. Returns the (time, overhead) within each of them.
fn within(calls: &mut Calls, session: Session, plans: &[(&str, f64)]) -> Vec<(f64, f64)> {
    let evidence = Evidence::of_fields(Some("SELECT"), None, None);
    plans.iter().map(|(context, ms)| add(calls, Nesting::new(session, context, evidence), *ms)).collect()
}

fn add(calls: &mut Calls, nesting: Nesting, ms: f64) -> (f64, f64) {
    let overhead_ms = Range { low: 0.0, estimate: 0.1 * ms, high: 0.2 * ms };
    let own = Cost { plans: 1, reported_ms: ms, overhead_ms, clock_ms: overhead_ms };
    let place = Place { file: 0, line: calls.plans };
    let within = calls.add(Executed { nesting, place, text: Some("select f()"), own });
    assert_eq!(within.overhead_ms, within.clock_ms);
    (within.reported_ms, (10.0 * within.overhead_ms.estimate).round())
}

fn of_session(plans: &[(&str, f64)]) -> Vec<(f64, f64)> {
    within(&mut Calls::default(), Session::Known(1), plans)
}

#[test]
fn a_caller_contains_what_it_executed() {
    let plans = [("g 1\nb := g()\nf 5", 20.0), ("g 2\nb := g()\nf 5", 30.0), ("b := g()\nf 5", 60.0), (CLIENT, 100.0)];
    // The overhead of all three nested plans is within the client's statement.
    assert_eq!(of_session(&plans), [(0.0, 0.0), (0.0, 0.0), (50.0, 50.0), (60.0, 110.0)]);
}

#[test]
fn plans_of_other_statements_are_not_within() {
    // The next statement is too short to contain the plan before it, and the one after it is too late.
    assert_eq!(of_session(&[("f 1", 20.0), (CLIENT, 10.0), (CLIENT, 50.0)]), [(0.0, 0.0); 3]);
    // Of two executions, the first one failed.
    assert_eq!(of_session(&[("f 1", 20.0), ("f 1", 21.0), (CLIENT, 30.0)])[2], (21.0, 21.0));
    assert_eq!(of_session(&[("f 1\nPL/pgSQL function inline_code_block line 1", 20.0), (CLIENT, 30.0)])[1], (0.0, 0.0));
    let mut calls = Calls::default();
    assert_eq!(within(&mut calls, Session::Known(1), &[("f 1", 20.0)]), [(0.0, 0.0)]);
    assert_eq!(within(&mut calls, Session::Known(2), &[(CLIENT, 30.0)]), [(0.0, 0.0)]);
    assert_eq!(within(&mut calls, Session::Known(1), &[(CLIENT, 30.0)]), [(20.0, 20.0)]);
}

#[test]
fn a_plan_of_an_unknown_session_waits_for_a_plan_that_can_contain_it() {
    let plans = [("f 1", 20.0), (CLIENT, 10.0), (CLIENT, 30.0)];
    assert_eq!(within(&mut Calls::default(), Session::Unknown(1), &plans)[1..], [(0.0, 0.0), (20.0, 20.0)]);
}

#[test]
fn times_are_rounded() {
    assert_eq!(of_session(&[("f 1", 0.0021), ("f 1", 0.0021), (CLIENT, 0.002)])[2].0, 0.0042);
}

#[test]
fn a_million_nested_plans_need_little_memory() {
    let mut calls = Calls::default();
    for n in 0..1000 {
        within(&mut calls, Session::Known(1), &[(&format!("select {n}\nf 3\nselect f()\ng 5"), 1.0)]);
        within(&mut calls, Session::Known(1), &[(&format!("select {n}\nf 4\nselect f()\ng 5"), 1.0)]);
    }
    assert_eq!(calls.sessions[&Session::Known(1)].plans.len(), MAX_WAITING);
    assert!(calls.lines <= 4 * MAX_WAITING, "{}", calls.lines);
    let sums = within(&mut calls, Session::Known(1), &[("select f()\ng 5", 2500.0), (CLIENT, 3000.0)]);
    assert_eq!(sums, [(2000.0, 2000.0), (2500.0, 4500.0)]);
    assert_eq!((calls.sessions.len(), calls.lines), (0, 0));
}

#[test]
fn sessions_without_an_end_need_little_memory() {
    let mut calls = Calls::default();
    for session in 0..5000 {
        within(&mut calls, Session::Known(session), &[("f 1\ng 2", 1.0)]);
    }
    assert_eq!((calls.sessions.len(), calls.lines), (MAX_SESSIONS, 2 * MAX_SESSIONS));
    assert_eq!(within(&mut calls, Session::Known(4999), &[(CLIENT, 2.0)]), [(1.0, 1.0)]);
    let deep: String = (0..2000).map(|n| format!("f {n}\n")).collect();
    for session in 0..1000 {
        within(&mut calls, Session::Known(session), &[(&deep, 1.0)]);
    }
    assert!(calls.lines <= MAX_LINES && calls.lines > MAX_LINES - 2000, "{}", calls.lines);
}

/// Receives (command, transaction, context, time) of the plans of a session. Returns the time within each of them.
fn in_transactions(calls: &mut Calls, plans: &[(&str, &str, &str, f64)]) -> Vec<f64> {
    let add = |(command, transaction, context, ms): &(&str, &str, &str, f64)| {
        let evidence = Evidence::of_fields(Some(command), Some(transaction), None);
        add(calls, Nesting::new(Session::Known(1), context, evidence), *ms).0
    };
    plans.iter().map(add).collect()
}

#[test]
fn a_cursor_contains_what_its_rows_executed() {
    let mut calls = Calls::default();
    let fetches = [("FETCH", "3/1", "f 1", 20.0), ("SELECT", "3/1", CLIENT, 50.0), ("FETCH", "3/1", "f 1", 20.0)];
    assert_eq!(in_transactions(&mut calls, &fetches), [0.0; 3]);
    assert_eq!(in_transactions(&mut calls, &[("CLOSE CURSOR", "3/1", CLIENT, 50.0)]), [40.0]);
    // The transaction of another cursor has failed.
    in_transactions(&mut calls, &[("FETCH", "3/2", "f 1", 20.0), ("SELECT", "3/3", "f 1", 1.0)]);
    assert_eq!((calls.sessions[&Session::Known(1)].plans.len(), calls.uncertain), (1, Uncertain::default()));
}

#[test]
fn a_failed_statement_contains_no_plan() {
    let mut calls = Calls::default();
    within(&mut calls, Session::Known(1), &[("f 1", 20.0)]);
    calls.fail(Session::Known(2));
    assert_eq!(calls.sessions.len(), 1);
    calls.fail(Session::Known(1));
    assert_eq!((calls.sessions.len(), calls.lines), (0, 0));
}

#[test]
fn a_plan_that_ended_long_before_its_caller_is_not_certain() {
    let mut calls = Calls::default();
    for (time, context, ms) in [("07:40:01.000", "f 1", 20.0), ("07:40:02.000", CLIENT, 50.0)] {
        let evidence = Evidence::of_fields(Some("SELECT"), Some("3/1"), Some(&format!("2026-11-25 {time}")));
        assert_eq!(add(&mut calls, Nesting::new(Session::Known(1), context, evidence), ms).0, 0.0);
    }
    assert_eq!((calls.uncertain.plans, calls.uncertain.without_command), (1, 0));
}

#[test]
fn plans_without_a_certain_caller_are_counted() {
    let mut calls = Calls::default();
    let add = |calls: &mut Calls, context: &str, ms| {
        add(calls, Nesting::new(Session::Known(1), context, Evidence::default()), ms)
    };
    // The statement names the function f, but not the trigger.
    add(&mut calls, "PL/pgSQL function trigger() line 1", 10.0);
    add(&mut calls, "PL/pgSQL function f() line 1", 20.0);
    assert_eq!(add(&mut calls, CLIENT, 100.0), (20.0, 20.0));
    assert_eq!(calls.uncertain, Uncertain { plans: 1, first: Some(Place { file: 0, line: 0 }), without_command: 1 });
    // A plan that does not fit is certainly not within.
    add(&mut calls, "PL/pgSQL function trigger() line 1", 10.0);
    assert_eq!((add(&mut calls, CLIENT, 9.0), calls.uncertain.plans, calls.lines), ((0.0, 0.0), 1, 0));
    // The oldest of many plans are one sum. A part of it fits.
    for _ in 0..MAX_WAITING + 9 {
        add(&mut calls, "PL/pgSQL function f() line 1", 1.0);
    }
    let fits = (MAX_WAITING - 1) as f64;
    assert_eq!(add(&mut calls, CLIENT, fits + 1.0), (fits, fits));
    assert_eq!((calls.uncertain.plans, calls.lines), (1 + 10, 0));
    // All of them are longer than the statement.
    for _ in 0..MAX_WAITING + 9 {
        add(&mut calls, "PL/pgSQL function f() line 1", 1.0);
    }
    assert_eq!((add(&mut calls, CLIENT, 0.9), calls.uncertain.plans), ((0.0, 0.0), 1 + 10));
}
