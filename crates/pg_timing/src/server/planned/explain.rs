//! Plans one statement of pg_stat_statements for any values of its parameters. Nothing is executed.

use super::planner_node::PlannerNode;
use super::skipped::Reason;
use super::typed_constants::as_sql;
use crate::error::{Error, SqlState};
use crate::server::explain::{Statement, TokenKind, Tokens};
use crate::server::session::Session;
use crate::server::settings::Server;
use std::collections::BTreeSet;

/// Planning takes milliseconds. The limits end the planning of a huge join, and a wait for a lock.
const SETTINGS: [&str; 3] = [
    "pg_catalog.set_config('statement_timeout', '2s', true)",
    "pg_catalog.set_config('lock_timeout', '100ms', true)",
    "pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true)",
];
const NAME: &str = "pg_timing_planned";
/// The protocol's limit.
const MAX_PARAMETERS: usize = 65_535;
/// The text that pg_stat_statements shows instead of a statement of another user.
const HIDDEN: &str = "<insufficient privilege>";
/// Utility statements without timed plan nodes. They make up most utility statements of any server.
#[rustfmt::skip]
const WITHOUT_NODES: [&str; 29] = [
    "ABORT", "ALTER", "ANALYZE", "BEGIN", "CHECKPOINT", "CLOSE", "CLUSTER", "COMMENT", "COMMIT", "DEALLOCATE", "DISCARD",
    "DROP", "END", "GRANT", "LISTEN", "LOAD", "LOCK", "NOTIFY", "REINDEX", "RELEASE", "RESET", "REVOKE", "ROLLBACK",
    "SAVEPOINT", "SET", "SHOW", "START", "TRUNCATE", "VACUUM",
];
/// What can follow CREATE in a statement that runs a query: CREATE TABLE AS and CREATE MATERIALIZED VIEW.
const WITH_QUERY: [&str; 7] = ["TABLE", "TEMP", "TEMPORARY", "UNLOGGED", "GLOBAL", "LOCAL", "MATERIALIZED"];

/// Returns the plan of a statement.
///
/// The text comes from another user. It runs only behind EXPLAIN or PREPARE, and the protocol accepts one statement.
/// `is_trusted` means that planning it runs no code that could steal rights. An error means that the connection is lost.
pub fn plan(
    session: &mut Session,
    server: &Server,
    text: &str,
    is_trusted: bool,
) -> Result<Result<PlannerNode, Reason>, Error> {
    let statement = match statement(text, server) {
        Ok(statement) => statement,
        Err(reason) => return Ok(Err(reason)),
    };
    if !is_trusted {
        return Ok(Err(Reason::NotTrusted));
    }
    let json = match explain(session, &statement) {
        Ok(json) => json,
        Err(error) if error.state.ends_session() || session.is_stopped() => return Err(error),
        Err(error) => return Ok(Err(Reason::Refused(error.what))),
    };
    Ok(PlannerNode::of_json(&json).map_err(Reason::Plan))
}

/// Returns the statement, or why it cannot be planned.
fn statement(text: &str, server: &Server) -> Result<Statement, Reason> {
    if text == HIDDEN {
        return Err(Reason::Hidden);
    }
    if has_no_nodes(text) {
        return Err(Reason::NoPlanNodes);
    }
    if is_truncated(text, server) {
        return Err(Reason::Incomplete);
    }
    // A higher number is refused by the server (MaxAllocSize, 65535 in the protocol), and would take memory here.
    if Tokens::of(text).filter_map(|token| token.parameter()).max() > Some(MAX_PARAMETERS) {
        return Err(Reason::Several);
    }
    let statement = match Statement::new(&as_sql(text)) {
        Ok(statement) => statement,
        Err(_) if Tokens::of(text).next().is_some_and(|first| first.is("EXPLAIN")) => return Err(Reason::Utility),
        Err(_) => return Err(Reason::Several),
    };
    if statement.is_preparable() { Ok(statement) } else { Err(Reason::Utility) }
}

/// Returns whether this is a utility statement without plan nodes.
pub fn has_no_nodes(text: &str) -> bool {
    let mut tokens = Tokens::of(text);
    let Some(first) = tokens.next() else { return false };
    let mut is_next = |words: &[&str]| tokens.next().is_some_and(|second| words.iter().any(|word| second.is(word)));
    WITHOUT_NODES.iter().any(|word| first.is(word)) || first.is("CREATE") && !is_next(&WITH_QUERY)
}

/// Returns whether the end of the text is missing: a quote or a parenthesis is open, or the text is as long as the server
/// keeps of a statement in pg_stat_activity, which some services copy.
fn is_truncated(text: &str, server: &Server) -> bool {
    let mut depth = 0i64;
    let mut ends_in_quote = false;
    for token in Tokens::of(text) {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        ends_in_quote = match token.kind {
            TokenKind::Text | TokenKind::QuotedName => !token.is_closed(),
            _ => false,
        };
    }
    depth != 0 || ends_in_quote || Some(text.len() + 1) == longest_activity_text(server)
}

/// Returns track_activity_query_size in bytes. The server prints it with a unit.
fn longest_activity_text(server: &Server) -> Option<usize> {
    let value = server.setting("track_activity_query_size")?;
    let number = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &value[number.len()..] {
        "MB" => 1 << 20,
        "kB" => 1 << 10,
        _ => 1,
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

/// Returns EXPLAIN's JSON.
///
/// `EXPLAIN (GENERIC_PLAN)` cannot be used: in the protocol that accepts only one statement, the server requires values for
/// the parameters, and plans for these values. A prepared statement has the same generic plan.
fn explain(session: &mut Session, statement: &Statement) -> Result<String, Error> {
    const UNCLEAR_TYPES: [&str; 2] = [SqlState::AMBIGUOUS_FUNCTION, SqlState::INDETERMINATE_DATATYPE];
    match explain_with(session, statement, "unknown") {
        // For example `generate_series($1, $2)`. With a wrong type, the server refuses the statement again.
        Err(error) if UNCLEAR_TYPES.iter().any(|state| error.state.is(state)) => {
            explain_with(session, statement, "integer").map_err(|_| error)
        }
        result => result,
    }
}

/// Returns EXPLAIN's JSON for parameters of this type. The server infers a type that is unknown.
fn explain_with(session: &mut Session, statement: &Statement, of_type: &str) -> Result<String, Error> {
    let used: BTreeSet<usize> = Tokens::of(statement.text()).filter_map(|token| token.parameter()).collect();
    // The server cannot infer the type of a parameter that the text does not use.
    let types =
        (1..=statement.parameters()).map(|number| if used.contains(&number) { of_type } else { "text" }.to_string());
    let prepare = statement.prepare_with_types(NAME, &types.collect::<Vec<String>>());
    let values = vec!["NULL"; statement.parameters()].join(", ");
    let values = if values.is_empty() { values } else { format!("({values})") };
    // VERBOSE shows the schemas of tables.
    let explain = format!("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE {NAME}{values}");
    let deallocate = format!("DEALLOCATE {NAME}");
    // In the same transaction, because a connection pooler can use another session for the next one.
    let result = session.run_all(&SETTINGS.map(String::from), &[&prepare, &explain, &deallocate]);
    // ROLLBACK does not undo PREPARE. If another client of a pooler has a statement with this name, it stays.
    let may_remain = result.as_ref().is_err_and(|error| !error.state.is(SqlState::STATEMENT_EXISTS));
    if may_remain && !session.is_stopped() {
        _ = session.run_all(&[], &[&deallocate]);
    }
    Ok(result?.lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_complete_statement_with_a_plan_is_accepted() {
        let server =
            Server { settings: [("track_activity_query_size".into(), "1kB".into())].into(), ..Server::default() };
        for (text, reason) in [
            ("<insufficient privilege>", Reason::Hidden),
            ("COMMIT", Reason::NoPlanNodes),
            ("-- end\nrollback", Reason::NoPlanNodes),
            ("create index on t (a)", Reason::NoPlanNodes),
            ("CREATE TEMP TABLE x AS SELECT 1", Reason::Utility),
            ("COPY t TO STDOUT", Reason::Utility),
            ("EXPLAIN ANALYZE SELECT 1", Reason::Utility),
            ("SELECT 1; DROP TABLE t", Reason::Several),
            ("SELECT (1", Reason::Incomplete),
            ("SELECT 'a", Reason::Incomplete),
            ("SELECT \"a", Reason::Incomplete),
            ("SELECT $$a", Reason::Incomplete),
            (&format!("SELECT {}", "a".repeat(1016)), Reason::Incomplete),
            ("SELECT * INTO new FROM t", Reason::Utility),
            ("", Reason::Several),
        ] {
            assert_eq!(statement(text, &server), Err(reason), "{text}");
        }
        assert_eq!(statement("SELECT date $1;", &server).unwrap().text(), "SELECT CAST($1 AS date)");
    }
}
