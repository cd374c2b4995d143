//! Lists events that the statistics do not contain, or show late.

use super::counts::{Counts, Part};
use super::facts::{Facts, REPORT_DELAY_S};
use super::statements::STATEMENTS;
use crate::server::own_sql;
use crate::server::settings::Server;

const PART: &str = "sessions";

/// Sessions of other users are visible only to superusers and to pg_monitor. For others, the type of a session is hidden, too.
/// A statement that waits for a lock makes no calls of plan nodes, and some kinds of statements have none.
pub fn part(_: &Server) -> Option<Part> {
    Some(Part { name: PART, sql: own_sql::SESSIONS.into() })
}

/// The sessions at the end of the window.
pub struct Sessions {
    /// there are sessions whose statements this user may not see
    pub has_hidden: bool,
    /// the longest time of a running statement, in s
    pub running_s: f64,
    /// the longest time of a running transaction, in s
    oldest_s: f64,
}

/// Returns the sessions at the end of the window. If they are unknown, there may be hidden ones.
pub fn sessions(counts: &Counts) -> Sessions {
    // Longer than 30 years is not plausible.
    let seconds = |name| counts.level(PART, name).ok().filter(|seconds| *seconds < 1e9).unwrap_or(0.0);
    Sessions {
        has_hidden: counts.level(PART, "hidden").map_or(true, |hidden| hidden > 0.0),
        running_s: seconds("running"),
        oldest_s: seconds("oldest"),
    }
}

/// Returns one line for each kind of missing events.
pub fn not_seen(facts: &Facts) -> Vec<String> {
    let Facts { server, counts, window_s, .. } = facts;
    let mut lines = Vec::new();
    if facts.window_s > 0.0 && *window_s <= REPORT_DELAY_S {
        lines.push("the window is shorter than the second that backends need to report their statistics".into());
    }
    lines.extend(counts.refused().into_iter().map(|(part, why)| format!("the statistics of {part}: {why}")));
    lines.extend(late(counts, *window_s));
    if !server.monitor && counts.level(STATEMENTS, "hidden").is_ok_and(|hidden| hidden > 0.0) {
        lines.push("statement texts of other users in pg_stat_statements: needs pg_monitor".into());
    }
    if server.is("track_counts", "off") {
        lines.push("statistics of tables and databases: track_counts is off".into());
    }
    if server.databases > 1 {
        lines.push("tables and functions of other databases: connect to each".into());
    }
    if server.setting("auto_explain.log_timing").is_none() {
        lines.push("auto_explain in other sessions, which can load it on their own".into());
    }
    if !server.other_settings.is_empty() {
        lines.push(format!("sessions that override a setting: {}", server.other_settings.join(", ")));
    }
    lines
}

/// Returns a line about transactions that still run, because they report only at their end.
fn late(counts: &Counts, window_s: f64) -> Option<String> {
    let Sessions { has_hidden, oldest_s, .. } = sessions(counts);
    match (has_hidden, oldest_s > window_s) {
        (_, true) => Some(format!("running transactions, the oldest for {oldest_s:.0} s: they report at their end")),
        (true, false) => Some("transactions of other users that started before the window: needs pg_monitor".into()),
        (false, false) => None,
    }
}
