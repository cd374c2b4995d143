//! How many transactions and statements there are: no setting, but what several are reckoned by.

use super::counts::Part;
use super::facts::{Events, Facts};
use crate::server::settings::Server;

pub const ACTIVITY: &str = "activity";
pub const STATEMENTS: &str = "statements";

/// Of all databases.
pub fn activity(_: &Server) -> Option<Part> {
    let sql = "SELECT v.name, v.n::text FROM (SELECT pg_catalog.sum(xact_commit + xact_rollback) AS transactions,
            pg_catalog.sum(temp_bytes) AS temp_bytes, pg_catalog.sum(blks_read) AS blks_read,
            EXTRACT(epoch FROM pg_catalog.max(stats_reset)) AS reset FROM pg_catalog.pg_stat_database) s,
        LATERAL (VALUES ('transactions', transactions), ('temp_bytes', temp_bytes), ('blks_read', blks_read),
            ('reset', reset)) v(name, n)";
    Some(Part { name: ACTIVITY, sql: sql.into() })
}

/// A plan of which a client gets n rows is asked n times at least, and once where it returns none.
/// Utility statements have rows too (COPY), but no plan that is timed; so only what begins like a
/// statement with a plan counts, and what begins with a comment does not.
pub fn counted(server: &Server) -> Option<Part> {
    let schema = server.statements_schema.as_ref()?;
    let sql = format!(
        "SELECT v.name, v.n::text FROM (SELECT pg_catalog.sum(calls) AS calls, pg_catalog.sum(plans) AS plans,
            pg_catalog.sum(calls + rows) FILTER (WHERE toplevel AND query ~* '^\\s*(select|with|insert|update|delete|merge|values|table)\\M') AS asked,
            pg_catalog.count(*) FILTER (WHERE query = '<insufficient privilege>') AS hidden
            FROM {schema}.pg_stat_statements) s,
        LATERAL (SELECT dealloc, EXTRACT(epoch FROM stats_reset) AS reset FROM {schema}.pg_stat_statements_info) i,
        LATERAL (VALUES ('calls', calls), ('plans', plans), ('asked', asked), ('hidden', hidden),
            ('dealloc', dealloc), ('reset', reset)) v(name, n)"
    );
    Some(Part { name: STATEMENTS, sql })
}

/// In the window.
pub fn transactions(facts: &Facts) -> Result<f64, String> {
    facts.counts.grew(ACTIVITY, "transactions")
}

/// One of pg_stat_statements' numbers in the window, and why there may be more.
pub fn grew(facts: &Facts, name: &str) -> Result<(f64, Option<&'static str>), String> {
    if facts.server.is("pg_stat_statements.track", "none") {
        return Err("pg_stat_statements.track is none".into());
    }
    let grew = facts.counts.grew(STATEMENTS, name)?;
    let forgot = facts.counts.grew(STATEMENTS, "dealloc")? > 0.0;
    let more = match (forgot, facts.server.is("pg_stat_statements.track_utility", "off")) {
        (true, _) => Some("pg_stat_statements forgot some meanwhile"),
        (_, true) => Some("pg_stat_statements.track_utility is off"),
        _ => None,
    };
    Ok((grew, more))
}

/// Statements, each with `low` to `high` reads: counted by pg_stat_statements, or else at least as many
/// as transactions.
pub fn events(facts: &Facts, low: f64, high: f64) -> Events {
    match (grew(facts, "calls"), transactions(facts)) {
        (Ok((calls, None)), _) => facts.counted(calls, low, high),
        (Ok((calls, Some(more))), _) => facts.counted(calls, low, high).or_more(more),
        (Err(_), Ok(transactions)) => facts
            .counted(transactions, low, high)
            .or_more("only transactions are counted; pg_stat_statements would count statements"),
        (Err(_), Err(why)) => Events::unknown(why),
    }
}

/// Whether the server was idle. So few transactions per second say nothing about a busy server.
pub fn is_idle(facts: &Facts) -> bool {
    const IDLE_PER_S: f64 = 10.0;
    transactions(facts).is_ok_and(|transactions| transactions < IDLE_PER_S * facts.window_s)
}
