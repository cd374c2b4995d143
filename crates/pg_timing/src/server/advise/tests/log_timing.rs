//! The answer about auto_explain.log_timing, alike in the table, in its explanation and in the JSON.

use super::*;
use crate::report::NodeCallsReport;
use crate::server::planned::{lookups, running_for};

/// Returns the row, the answer and the screen for this workload, with log_timing on.
fn log_timing(workload: Workload) -> (SettingAdvice, NodeCallsReport, String) {
    let on = [
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "on"),
        ("auto_explain.log_min_duration", "1s"),
        ("auto_explain.sample_rate", "1"),
    ];
    let mut facts = facts(Some(22.0), 0.0, &on);
    facts.workload = Ok(workload);
    let report = report(&facts, false);
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
    let (setting, node_calls, screen) = log_timing(running_for(1e4, &[3.0, 354.0]));
    assert_eq!((setting.advice, node_calls.answer), (Action::Unknown, LogTimingAnswer::Unknown));
    assert!(setting.summary.contains("a statement has been running for 354 s"), "{setting:?}");
    assert_eq!(setting.hint.as_deref(), node_calls.hint.as_deref());
    assert!(setting.hint.unwrap().ends_with("pg_timing advise --window 708"));
    // The figures are lower bounds.
    assert_eq!(setting.core_share.unwrap().high, None);
    assert!(screen.lines().any(|line| line.contains(">= 0.0") && line.ends_with("not determined")), "{screen}");
    // Statements that take less than half of the window are counted.
    let (setting, ..) = log_timing(running_for(1e4, &[3.0]));
    assert_eq!(setting.advice, Action::Keep);
    // A certain cost does not depend on it.
    let (setting, ..) = log_timing(running_for(1e7, &[354.0]));
    assert_eq!(setting.advice, Action::TurnOff);
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
