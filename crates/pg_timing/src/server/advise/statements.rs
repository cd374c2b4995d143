//! Numbers of transactions and statements, which several settings use.

use super::facts::{Events, Facts, Gap, Part};
use crate::server::own_sql;
use crate::server::settings::{Server, set_hint};

pub const ACTIVITY: &str = "activity";
pub const STATEMENTS: &str = "statements";

/// Statistics of all databases together.
pub fn activity() -> Part {
    Part { name: ACTIVITY, sql: own_sql::DATABASES.into() }
}

/// Statistics of pg_stat_statements. A plan that returns n rows to a client has at least n calls, and one call if it
/// returns no rows. Utility statements such as COPY have rows, but no timed plan. So only texts that start like a
/// statement with a plan count; texts that start with a comment do not.
pub fn counted(server: &Server) -> Option<Part> {
    let objects = ["pg_stat_statements", "pg_stat_statements_info"].map(|name| server.extension_object(name));
    let [Some(statements), Some(info)] = objects else { return None };
    Some(Part { name: STATEMENTS, sql: own_sql::statements(&statements, &info) })
}

/// Returns the number of transactions in the window.
pub fn transactions(facts: &Facts) -> Result<f64, Gap> {
    facts.counts.growth(ACTIVITY, "transactions")
}

/// Returns a gap if the server has no pg_stat_statements, or does not fill it.
fn check(server: &Server) -> Result<(), Gap> {
    if let Some(error) = server.unsafe_object("pg_stat_statements") {
        return Err(Gap::new(error.what, error.hint));
    }
    if server.extension_object("pg_stat_statements").is_none() {
        let hint = match server.setting("pg_stat_statements.track") {
            Some(_) => "run in this database: CREATE EXTENSION pg_stat_statements",
            None => {
                "add pg_stat_statements to shared_preload_libraries, restart the server, and run: CREATE EXTENSION pg_stat_statements"
            }
        };
        return Err(Gap::new("the database has no pg_stat_statements", hint));
    }
    if server.is("pg_stat_statements.track", "none") {
        let hint = set_hint("pg_stat_statements.track", "'top'");
        return Err(Gap::new("pg_stat_statements.track is none", hint));
    }
    if server.is("compute_query_id", "off") {
        let hint = set_hint("compute_query_id", "'auto'");
        return Err(Gap::new("compute_query_id is off, so pg_stat_statements records nothing", hint));
    }
    Ok(())
}

/// Returns the growth of a number of pg_stat_statements, and the reason why it may be a lower bound.
pub fn growth(facts: &Facts, name: &str) -> Result<(f64, Option<Gap>), Gap> {
    check(&facts.server)?;
    let growth = facts.counts.growth(STATEMENTS, name)?;
    let removed = facts.counts.growth(STATEMENTS, "dealloc")? > 0.0;
    let more = match (removed, facts.server.is("pg_stat_statements.track_utility", "off")) {
        (true, _) => Some(Gap::new(
            "pg_stat_statements removed statements during the window",
            "run: ALTER SYSTEM SET pg_stat_statements.max = 20000; then restart the server",
        )),
        (_, true) => Some(Gap::new(
            "pg_stat_statements.track_utility is off",
            set_hint("pg_stat_statements.track_utility", "on"),
        )),
        _ => None,
    };
    Ok((growth, more))
}

/// Returns the statements, each with `low` to `high` reads. Without pg_stat_statements the number of transactions is a
/// lower bound.
pub fn events(facts: &Facts, low: f64, high: f64) -> Events {
    match (growth(facts, "calls"), transactions(facts)) {
        (Ok((calls, more)), _) => facts.counted(calls, low, high).or_more(more),
        (Err(gap), Ok(transactions)) => {
            let gap = Gap::new(format!("only transactions are counted: {}", gap.why), gap.hint);
            facts.counted(transactions, low, high).or_more(Some(gap))
        }
        (Err(_), Err(why)) => Events::unknown(why),
    }
}

/// Returns whether the server was idle. Such a window says nothing about a busy server.
pub fn is_idle(facts: &Facts) -> bool {
    const IDLE_PER_S: f64 = 10.0;
    transactions(facts).is_ok_and(|transactions| transactions < IDLE_PER_S * facts.window_s)
}
