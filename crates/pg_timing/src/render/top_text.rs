//! The words of `explain --top`, for the screen and for the page.

use crate::human::{count, count_range, duration, percent, percent_range, uptime};
use crate::report::{NS_PER_MS, SkippedStatements, TopReport, TopStatement};

/// Returns the first line.
pub fn headline(report: &TopReport) -> String {
    let number = report.statements.len();
    let statements = if number == 1 { "1 statement" } else { &format!("{number} statements") };
    format!("PostgreSQL {}, {}: {statements}, planned and not executed", report.server_version, report.server)
}

/// Returns where the executions come from.
pub fn period(report: &TopReport) -> String {
    format!("executions since pg_stat_statements was reset {} ago", uptime(report.since_reset_s))
}

/// Returns the statement in one line.
pub fn one_line(statement: &TopStatement) -> String {
    statement.statement.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn executions(statement: &TopStatement) -> String {
    count(statement.calls.round() as u64)
}

pub fn mean(statement: &TopStatement) -> String {
    duration(statement.mean_ms * NS_PER_MS)
}

pub fn node_calls(statement: &TopStatement) -> String {
    count_range(statement.node_calls.low, statement.node_calls.high)
}

pub fn added(statement: &TopStatement) -> String {
    let Some(added) = statement.added_ms else { return "-".into() };
    let [low, high] = [added.low, added.high].map(|ms| duration(ms * NS_PER_MS));
    if low == high { low } else { format!("{low} to {high}") }
}

pub fn share(statement: &TopStatement) -> String {
    statement.added_share.map_or("-".into(), |share| percent_range(share.low, Some(share.high)))
}

/// Returns a line about skipped statements.
pub fn skipped(skipped: &SkippedStatements) -> String {
    let SkippedStatements { why, statements, time_share, example } = skipped;
    let number = if *statements == 1 { "1 statement".into() } else { format!("{} statements", count(*statements)) };
    let example = example.as_ref().map_or(String::new(), |text| format!("; the first: {text}"));
    format!("{number} with {} of the time: {why}{example}", percent(*time_share))
}

/// Returns what the columns mean.
pub fn legend() -> &'static str {
    "node calls: of all plan nodes per execution, from the planner's row counts. timing adds: the clock reads of EXPLAIN \
     ANALYZE, or of auto_explain with log_timing, per execution. share: of the time of an execution with timing"
}
