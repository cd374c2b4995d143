//! The answer about auto_explain.log_timing.

use super::*;
use crate::report::Report;
use crate::server::settings::ExtensionObject;

const ON: [(&str, &str); 5] = [
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_timing", "on"),
    ("auto_explain.log_min_duration", "1s"),
    ("auto_explain.sample_rate", "1"),
    ("pg_fast_timing.count_calls", "top"),
];

/// Returns the facts about a server with log_timing on, on which pg_fast_timing counted these node calls in the window.
fn counted(calls_per_s: f64) -> Facts {
    let mut facts = facts(Some(22.0), 0.0, &ON);
    facts.server.extension_objects.push(ExtensionObject::safe("pg_fast_timing_counters"));
    facts.clocks.here = Some(Report::empty(crate::report::Origin::Measured, ""));
    with_counts(&mut facts, calls_per_s, 0.0);
    facts
}

/// Sets the counts of pg_fast_timing in the window.
fn with_counts(facts: &mut Facts, calls_per_s: f64, failed: f64) {
    let snapshot = |calls: f64, failed: f64| {
        let numbers = [("of_server", 1.0), ("node_calls", calls), ("failed", failed), ("reset", 7.0)];
        Snapshot::of("pg_fast_timing", &numbers)
    };
    let (before, after) = (std::mem::take(&mut facts.before), std::mem::take(&mut facts.after));
    let end = snapshot(5.0 + 10.0 * calls_per_s, failed);
    (facts.before, facts.after) = (before.and(snapshot(5.0, 0.0)), after.and(end));
}

/// Sets the sessions at the end of the window.
fn with_sessions(mut facts: Facts, hidden: f64, running_s: f64) -> Facts {
    let numbers = [("hidden", hidden), ("oldest", 0.0), ("running", running_s)];
    facts.after = facts.after.and(Snapshot::of("sessions", &numbers));
    facts
}

/// Returns the row and the screen.
fn advice(facts: &Facts) -> (SettingAdvice, String) {
    let report = report(facts, false);
    let screen = document::text::piped(&document::advise::document(&report));
    (setting(&report, "auto_explain.log_timing").clone(), screen)
}

#[test]
fn counted_calls_give_a_yes_or_no() {
    let answers = [(1e4, "1"), (2e5, "1"), (1e7, "1"), (1e7, "0.001")].map(|(per_s, sample_rate)| {
        let mut facts = counted(per_s);
        facts.server.settings.insert("auto_explain.sample_rate".into(), sample_rate.into());
        let setting = advice(&facts).0;
        (setting.advice, setting.summary.split(':').next().unwrap().to_string())
    });
    assert_eq!(
        answers,
        [
            (Action::Keep, "yes".to_string()),
            (Action::SampleLess, "no, or only with a lower sample_rate".into()),
            (Action::TurnOff, "no".into()),
            (Action::Keep, "yes".into()),
        ]
    );
    insta::assert_snapshot!(advice(&counted(1e7)).1);
}

#[test]
fn a_setting_that_is_off_gets_the_same_answer() {
    let off = |calls_per_s| {
        let mut facts = counted(calls_per_s);
        for (name, value) in [("auto_explain.log_timing", "off"), ("pg_fast_timing.method", "auto")] {
            facts.server.settings.insert(name.into(), value.into());
        }
        advice(&facts).0
    };
    let setting = off(2e6);
    assert_eq!((setting.advice, setting.events_are), (Action::None, EventsAre::Counted));
    assert_eq!(setting.events_per_s, Some(2e6));
    assert!(setting.summary.starts_with("no: 2 M node calls per second take "), "{setting:?}");
    let setting = off(1e4);
    assert_eq!((setting.advice, setting.line.as_deref()), (Action::TurnOn, Some("auto_explain.log_timing = on")));
}

/// The monitor exports the number, also if pg_fast_timing makes the cost small, or if the cost is unknown.
#[test]
fn counted_calls_are_given_without_a_cost() {
    let mut fast = counted(2e6);
    fast.server.settings.insert("pg_fast_timing.method".into(), "auto".into());
    let mut without_cost = counted(2e6);
    let unknown = cost(None);
    without_cost.clocks = Clocks { system: unknown.clone(), read: unknown.clone(), node: unknown, here: None };
    for (facts, action, words) in [
        (fast, Action::Keep, "pg_fast_timing times the nodes"),
        (without_cost, Action::Unknown, "not determined: the read cost of the clock is unknown"),
    ] {
        let setting = advice(&facts).0;
        assert_eq!((setting.events_per_s, setting.events_are), (Some(2e6), EventsAre::Counted), "{setting:?}");
        assert_eq!((setting.advice, setting.core_share), (action, None));
        assert!(setting.summary.starts_with(words), "{setting:?}");
    }
}

#[test]
fn without_counts_only_a_certain_no_is_an_answer() {
    let with_rows = |rows_per_s: f64, ns: f64| {
        let mut facts = facts(Some(ns), 0.0, &ON[..4]);
        facts.after = facts.after.and(Snapshot::of("tables", &[("asked", 10.0 * rows_per_s)]));
        advice(&facts)
    };
    for rows_per_s in [0.0, 2000.0] {
        let (setting, screen) = with_rows(rows_per_s, 22.0);
        assert_eq!(setting.advice, Action::Unknown);
        assert!(setting.summary.contains("unknown: pg_fast_timing is not loaded"), "{setting:?}");
        let hint = setting.hint.unwrap();
        assert!(["count_calls", "shared_preload_libraries", "pg_timing explain"].iter().all(|way| hint.contains(way)));
        let row = screen.lines().find(|line| line.ends_with("auto_explain.log_timing = on")).unwrap();
        assert!(row.contains("  not determined  "), "{screen}");
    }
    // Each row that is sent or changed is a call.
    let setting = with_rows(1e6, 1000.0).0;
    assert_eq!(setting.advice, Action::TurnOff);
    assert!(setting.core_share.unwrap().low > 0.01, "{setting:?}");
}

#[test]
fn incomplete_counts_are_not_used() {
    // The method had no counter for some statements, so they were not counted.
    let mut facts = counted(2e6);
    with_counts(&mut facts, 2e6, 3.0);
    assert!(advice(&facts).0.summary.contains("pg_fast_timing did not count 3 statements"));
    // Only this session has loaded the library.
    let mut facts = counted(2e6);
    facts.after = facts.after.and(Snapshot::of("pg_fast_timing", &[("of_server", 0.0)]));
    assert!(advice(&facts).0.summary.contains("is not in shared_preload_libraries"));
    // A session has switched the counter off: its statements sent more rows than were counted.
    let with_rows = |rows_per_s: f64| {
        let snapshot = |asked| Snapshot::of("statements", &[("asked", asked), ("dealloc", 0.0)]);
        let mut facts = counted(1e4);
        facts.server.extension_objects.push(ExtensionObject::safe("pg_stat_statements"));
        let (before, after) = (facts.before, facts.after);
        (facts.before, facts.after) = (before.and(snapshot(0.0)), after.and(snapshot(10.0 * rows_per_s)));
        advice(&facts).0.advice
    };
    assert_eq!(with_rows(1e4), Action::Keep);
    assert_eq!(with_rows(1.1e4), Action::Unknown);
}

#[test]
fn an_idle_server_gives_no_yes() {
    // A monitoring agent runs a query now and then.
    for per_s in [0.0, 0.2] {
        let (setting, screen) = advice(&counted(per_s));
        let text =
            format!("almost nothing ran ({per_s:.1} node calls per second); 141 k per second would cost 1% of a core");
        assert_eq!((setting.advice, setting.summary.as_str()), (Action::Unknown, &*format!("not determined: {text}")));
        assert!(
            screen.contains("auto_explain.log_timing: almost nothing ran") && screen.contains("  hint: "),
            "{screen}"
        );
    }
}

#[test]
fn a_running_statement_gives_no_yes() {
    let (setting, screen) = advice(&with_sessions(counted(1e4), 0.0, 354.0));
    assert_eq!(setting.advice, Action::Unknown);
    assert!(setting.summary.contains("a statement has been running for 354 s"), "{setting:?}");
    assert!(setting.hint.unwrap().ends_with("pg_timing advise --window 708"));
    // The figures are lower bounds.
    assert_eq!((setting.core_share.unwrap().high, setting.events_are), (None, EventsAre::AtLeast));
    assert!(screen.lines().any(|line| line.contains(">= 0.0") && line.contains("  not determined  ")), "{screen}");
    // Statements that take less than half of the window are counted.
    assert_eq!(advice(&with_sessions(counted(1e4), 0.0, 3.0)).0.advice, Action::Keep);
    // A certain cost does not depend on it. But the figures are lower bounds, and no sample_rate is known to be low enough.
    let setting = advice(&with_sessions(counted(1e7), 0.0, 354.0)).0;
    assert_eq!(setting.advice, Action::TurnOff);
    assert!(setting.summary.starts_with("no: ") && setting.summary.ends_with(" of a core"), "{setting:?}");
}

#[test]
fn hidden_sessions_give_no_yes() {
    let setting = advice(&with_sessions(counted(1e4), 1.0, 0.0)).0;
    assert_eq!(setting.advice, Action::Unknown);
    assert!(setting.summary.contains("which this user may not see"));
    assert!(setting.hint.unwrap().contains("GRANT pg_monitor"));
}

#[test]
fn the_row_and_its_explanation_have_the_same_figures() {
    for per_s in [1e2, 1e4, 1e5, 1e7, 1e9] {
        let mut facts = counted(per_s);
        facts.clocks.here.as_mut().unwrap().cpus.online = crate::report::Fact::Known(vec![0, 1]);
        let (setting, screen) = advice(&facts);
        let share = setting.core_share.unwrap();
        assert!(share.high.unwrap() <= 2.0, "{share:?}");
        let text = crate::human::percent_range(share.low, share.high);
        let row = screen.lines().find(|line| line.ends_with("auto_explain.log_timing = on")).unwrap();
        assert!(
            row.contains(&format!("  {text}  ")) && setting.summary.contains(&format!(" {text} of a core")),
            "{screen}"
        );
    }
}

#[test]
fn the_lower_bound_assumes_that_a_session_executes_fewer_statements() {
    let share = |needed: f64, log_timing: &str| {
        let mut facts = counted(1e4);
        facts.server.settings.insert("auto_explain.log_timing".into(), log_timing.into());
        super::super::log_timing::share(&facts, (needed, 2.0 * needed))
    };
    // A second of work needs 1 to 2 s of clock reads: at least half of the session's time.
    assert_eq!(share(1.0, "off"), (0.5, 2.0));
    // The present rate contains the cost already.
    assert_eq!(share(1.0, "on").0, 1.0);
    assert!((share(0.001, "off").0 - 0.001).abs() < 2e-6);
}
