//! The answer about auto_explain.log_timing, alike in the table, in its explanation and in the JSON.

use super::*;
use crate::report::{CallsAre, NodeCallsReport, Range};
use crate::server::planned::lookups;

const ON: [(&str, &str); 4] = [
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_timing", "on"),
    ("auto_explain.log_min_duration", "1s"),
    ("auto_explain.sample_rate", "1"),
];

/// Returns the facts about this workload, with log_timing on, and with statements that have been running for these times.
fn with_log_timing(workload: Result<Workload, Error>, running_s: &[f64]) -> Facts {
    Facts { workload, activity: Activity::running(running_s), ..facts(Some(22.0), 0.0, &ON) }
}

/// Returns the row, the answer and the screen for this workload, with log_timing on.
fn log_timing(workload: Workload) -> (SettingAdvice, NodeCallsReport, String) {
    advice(&with_log_timing(Ok(workload), &[]))
}

fn advice(facts: &Facts) -> (SettingAdvice, NodeCallsReport, String) {
    let report = report(facts, false);
    let screen = anstream::adapter::strip_str(&render::text::advise::text(&report)).to_string();
    (setting(&report, "auto_explain.log_timing").clone(), report.node_calls.clone(), screen)
}

#[test]
fn an_idle_server_gives_no_yes() {
    let (setting, node_calls, screen) = log_timing(lookups(0.0));
    assert_eq!((setting.advice, node_calls.answer), (Action::Unknown, LogTimingAnswer::Unknown));
    let text = "not determined: nothing ran; 145 k node calls per second would cost 1% of a core";
    assert_eq!(setting.summary, text);
    assert_eq!(node_calls.doubt.as_deref(), text.strip_prefix("not determined: "));
    assert!(screen.contains("auto_explain.log_timing: nothing ran;") && screen.contains("  hint: "), "{screen}");
    // A monitoring agent runs a query now and then.
    let (setting, ..) = log_timing(lookups(0.2));
    assert!(
        setting.summary.starts_with("not determined: almost nothing ran (0.2 executions per second)"),
        "{setting:?}"
    );
}

#[test]
fn a_running_statement_gives_no_yes() {
    let (setting, node_calls, screen) = advice(&with_log_timing(Ok(lookups(1e4)), &[3.0, 354.0]));
    assert_eq!((setting.advice, node_calls.answer), (Action::Unknown, LogTimingAnswer::Unknown));
    assert!(setting.summary.contains("a statement has been running for 354 s"), "{setting:?}");
    assert_eq!(setting.hint.as_deref(), node_calls.hint.as_deref());
    assert!(setting.hint.unwrap().ends_with("pg_timing advise --window 708"));
    // The figures are lower bounds.
    assert_eq!(setting.core_share.unwrap().high, None);
    assert!(screen.lines().any(|line| line.contains(">= 0.0") && line.ends_with("not determined")), "{screen}");
    // Statements that take less than half of the window are counted.
    let (setting, ..) = advice(&with_log_timing(Ok(lookups(1e4)), &[3.0]));
    assert_eq!(setting.advice, Action::Keep);
    // A certain cost does not depend on it.
    let (setting, node_calls, _) = advice(&with_log_timing(Ok(lookups(1e7)), &[354.0]));
    assert_eq!((setting.advice, node_calls.answer), (Action::TurnOff, LogTimingAnswer::No));
    // But the figures are lower bounds, and no sample_rate is known to be low enough.
    assert!(setting.summary.starts_with("no: at least ") && setting.summary.ends_with(" of a core"), "{setting:?}");
    assert_eq!(node_calls.sample_rate, None);
}

#[test]
fn the_row_and_its_explanation_have_the_same_figures() {
    for per_s in [1e2, 1e4, 1e5, 1e7, 1e9] {
        let (setting, _, screen) = log_timing(lookups(per_s));
        let share = setting.core_share.unwrap();
        // Two CPUs.
        assert!(share.high.unwrap() <= 2.0, "{share:?}");
        let text = crate::human::percent_range(share.low, share.high);
        let row = screen.lines().find(|line| line.starts_with("auto_explain.log_timing ")).unwrap();
        assert!(
            row.contains(&format!("  {text}  ")) && setting.summary.contains(&format!(" {text} of a core")),
            "{screen}"
        );
    }
}

#[test]
fn statements_that_are_not_recorded_give_no_yes() {
    let facts = |calls_per_s| {
        let mut facts = with_log_timing(Ok(lookups(calls_per_s)), &[]);
        facts.server.settings.insert("pg_stat_statements.track".into(), "top".into());
        facts.server.settings.insert("auto_explain.log_nested_statements".into(), "on".into());
        facts
    };
    let (setting, node_calls, _) = advice(&facts(1e3));
    assert_eq!((setting.advice, node_calls.answer), (Action::Unknown, LogTimingAnswer::Unknown));
    assert!(setting.summary.contains("log_nested_statements"), "{setting:?}");
    assert!(node_calls.hint.unwrap().contains("ALTER SYSTEM SET pg_stat_statements.track = 'all'"));
    let (setting, node_calls, _) = advice(&facts(1e7));
    assert_eq!((setting.advice, node_calls.sample_rate), (Action::TurnOff, None));
    assert!(setting.summary.starts_with("no: at least "), "{setting:?}");
}

/// Adds what pg_fast_timing counted in the window.
fn with_counts(facts: Facts, calls_per_s: f64, count_calls: &str) -> Facts {
    let snapshot =
        |calls: f64| Snapshot::of("pg_fast_timing", &[("node_calls", calls), ("failed", 0.0), ("reset", 7.0)]);
    let Facts { mut server, counts: Counts { before, after }, .. } = facts;
    server.settings.insert("pg_fast_timing.count_calls".into(), count_calls.into());
    server.settings.insert("auto_explain.log_timing".into(), "off".into());
    let counts = Counts { before: before.and(snapshot(5.0)), after: after.and(snapshot(5.0 + 10.0 * calls_per_s)) };
    Facts { server, counts, ..facts }
}

#[test]
fn exact_counts_replace_the_estimate() {
    let estimated = || with_log_timing(Ok(lookups(1e6)), &[]);
    let (setting, node_calls, screen) = advice(&with_counts(estimated(), 2e6, "top"));
    let window = node_calls.window.unwrap();
    assert_eq!((window.calls_are, window.per_s), (CallsAre::Counted, Range::between(2e6, 2e6)));
    assert_eq!((setting.events_are, setting.events_per_s), (EventsAre::Counted, Some(2e6)));
    assert!(setting.summary.starts_with("no: 2 M node calls per second take "), "{setting:?}");
    assert!(setting.why.contains("pg_fast_timing has counted the calls"), "{setting:?}");
    // The screen has no "about" sign.
    assert!(
        screen.lines().any(|line| line.starts_with("auto_explain.log_timing") && line.contains(" 2 M ")),
        "{screen}"
    );
    // The method had no counter for some statements, so they were not counted.
    let mut facts = with_counts(estimated(), 2e6, "top");
    facts.counts.after = facts
        .counts
        .after
        .and(Snapshot::of("pg_fast_timing", &[("node_calls", 5.0 + 2e7), ("failed", 3.0), ("reset", 7.0)]));
    assert_eq!(advice(&facts).1.window.unwrap().calls_are, CallsAre::Estimated);
    // The counter contains nested statements, which log_timing does not time.
    let (_, node_calls, _) = advice(&with_counts(estimated(), 2e6, "all"));
    assert_eq!(node_calls.window.unwrap().calls_are, CallsAre::Estimated);
}

#[test]
fn exact_counts_need_no_statistics_of_statements() {
    let without = || with_log_timing(Err(Error::new("the database has no pg_stat_statements", "")), &[]);
    let (setting, node_calls, _) = advice(&with_counts(without(), 2e6, "top"));
    assert_eq!((setting.advice, node_calls.answer), (Action::None, LogTimingAnswer::No));
    assert_eq!((node_calls.unavailable, node_calls.window.unwrap().executions_per_s), (None, None));
    let (setting, node_calls, _) = advice(&with_counts(without(), 1e4, "top"));
    assert_eq!((setting.advice, node_calls.answer), (Action::TurnOn, LogTimingAnswer::Yes));
    // An idle server says nothing about a busy one.
    let (_, node_calls, _) = advice(&with_counts(without(), 0.1, "top"));
    assert!(node_calls.doubt.unwrap().starts_with("almost nothing ran; "));
}
