//! What the server did not show, or shows late.

use super::counts::{Counts, Part};
use super::facts::{Facts, LATE_S};
use super::statements::STATEMENTS;
use crate::server::settings::Server;

const PART: &str = "sessions";

/// What others do is seen by them, superusers and pg_monitor.
pub fn part(_: &Server) -> Option<Part> {
    let sql = "SELECT v.name, v.n::text FROM (SELECT
            pg_catalog.count(*) FILTER (WHERE query = '<insufficient privilege>') AS hidden,
            coalesce(EXTRACT(epoch FROM pg_catalog.max(pg_catalog.clock_timestamp() - xact_start)), 0) AS oldest
            FROM pg_catalog.pg_stat_activity
            WHERE pid <> pg_catalog.pg_backend_pid() AND backend_type IN ('client backend', 'parallel worker')) s,
        LATERAL (VALUES ('hidden', hidden), ('oldest', oldest)) v(name, n)";
    Some(Part { name: PART, sql: sql.into() })
}

pub fn not_seen(facts: &Facts) -> Vec<String> {
    let Facts { server, counts, window_s, .. } = facts;
    let mut lines = Vec::new();
    if facts.window_s > 0.0 && *window_s <= LATE_S {
        lines.push("the window is shorter than the second that backends take to report what they did".into());
    }
    lines.extend(counts.refused().into_iter().map(|(part, why)| format!("the statistics of {part}: {why}")));
    lines.extend(late(counts, *window_s));
    if !server.monitor && counts.level(STATEMENTS, "hidden").is_ok_and(|hidden| hidden > 0.0) {
        lines.push("the texts of others' statements in pg_stat_statements: needs pg_monitor".into());
    }
    if server.is("track_counts", "off") {
        lines.push("what tables and databases did: track_counts is off".into());
    }
    if server.databases > 1 {
        lines.push("tables and functions of other databases: connect to each".into());
    }
    if server.setting("auto_explain.log_timing").is_none() {
        lines.push("auto_explain in other sessions, which may load it by themselves".into());
    }
    if !server.made_for.is_empty() {
        lines.push(format!("sessions with settings of their own: {}", server.made_for.join(", ")));
    }
    lines
}

/// A transaction is reported at its end.
fn late(counts: &Counts, window_s: f64) -> Option<String> {
    let hidden = counts.level(PART, "hidden").unwrap_or(0.0);
    let oldest = counts.level(PART, "oldest").ok()?;
    match (hidden > 0.0, oldest > window_s) {
        (_, true) => Some(format!(
            "what transactions have done that still run, the oldest for {oldest:.0} s: they report at their end"
        )),
        (true, false) => Some(
            "whether transactions run that began before the window and report at their end: needs pg_monitor".into(),
        ),
        (false, false) => None,
    }
}
