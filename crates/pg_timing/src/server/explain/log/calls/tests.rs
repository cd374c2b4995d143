use super::*;

const CLIENT: &str = "";

/// Receives (context, time) of plans that each have an overhead of 10%. Returns the (time, overhead) within each of them.
fn within(calls: &mut Calls, session: Session, plans: &[(&str, f64)]) -> Vec<(f64, f64)> {
    let add = |(context, ms): &(&str, f64)| {
        let overhead_ms = Range { low: 0.0, estimate: 0.1 * ms, high: 0.2 * ms };
        let own = Cost { plans: 1, reported_ms: *ms, overhead_ms, clock_ms: overhead_ms };
        let within = calls.add(Nesting::new(session, context, None), &own);
        assert_eq!(within.overhead_ms, within.clock_ms);
        (within.reported_ms, (10.0 * within.overhead_ms.estimate).round())
    };
    plans.iter().map(add).collect()
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
