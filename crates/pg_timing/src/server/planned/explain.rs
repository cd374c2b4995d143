//! Plans one statement of pg_stat_statements for any values of its parameters. Nothing is executed.

use super::planner_node::PlannerNode;
use super::skipped::Reason;
use super::typed_constants::with_casts;
use crate::error::{Error, SqlState};
use crate::server::explain::{Statement, TokenKind, Tokens};
use crate::server::session::Session;
use crate::server::settings::Server;

/// Planning takes milliseconds. The limits end the planning of a huge join, and a wait for a lock.
const SETTINGS: [(&str, &str); 2] = [("statement_timeout", "2s"), ("lock_timeout", "100ms")];
/// Values that keep our EXPLAIN out of pg_stat_statements and of the log. Each is set if the user may set it.
const QUIET: [(&str, &str); 2] = [("pg_stat_statements.track", "none"), ("auto_explain.log_min_duration", "-1")];
const NAME: &str = "pg_timing_planned";
/// The text that pg_stat_statements shows instead of a statement of another user.
const HIDDEN: &str = "<insufficient privilege>";
/// Utility statements without timed plan nodes. They make up most utility statements of any server.
const WITHOUT_NODES: [&str; 26] = [
    "ABORT", "ALTER", "ANALYZE", "BEGIN", "CHECKPOINT", "CLOSE", "COMMENT", "COMMIT", "DEALLOCATE", "DISCARD", "DROP", "END",
    "GRANT", "LISTEN", "LOAD", "LOCK", "NOTIFY", "RELEASE", "RESET", "REVOKE", "ROLLBACK", "SAVEPOINT", "SET", "SHOW",
    "START", "TRUNCATE",
];

/// Returns the plan of a statement.
///
/// The text comes from another user. It runs only behind EXPLAIN or PREPARE, and the protocol accepts one statement.
/// `is_trusted` means that planning it runs no code of other users. An error means that the connection is lost.
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
    let json = match explain(session, server, &statement) {
        Ok(json) => json,
        Err(error) if error.state.ends_session() || session.is_stopped() => return Err(error),
        Err(error) => return Ok(Err(Reason::Refused(error.what))),
    };
    Ok(PlannerNode::of_json(&json).map_err(Reason::Plan))
}

/// Returns the statement, or why it cannot be planned.
fn statement(text: &str, server: &Server) -> Result<Statement, Reason> {
    let first = Tokens::of(text).next();
    match first {
        _ if text == HIDDEN => return Err(Reason::Hidden),
        Some(first) if WITHOUT_NODES.iter().any(|word| first.is(word)) => return Err(Reason::NoPlanNodes),
        _ => {}
    }
    if is_truncated(text, server) {
        return Err(Reason::Incomplete);
    }
    let statement = Statement::new(&with_casts(text)).map_err(|_| Reason::Several)?;
    if statement.is_preparable() { Ok(statement) } else { Err(Reason::Utility) }
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
fn explain(session: &mut Session, server: &Server, statement: &Statement) -> Result<String, Error> {
    let values = vec!["NULL"; statement.parameters()].join(", ");
    let values = if values.is_empty() { values } else { format!("({values})") };
    // VERBOSE shows the schemas of tables.
    let explain = format!("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE {NAME}{values}");
    let statements = [&statement.prepare_as(NAME), "SET LOCAL plan_cache_mode = force_generic_plan", &explain];
    let result = session.run_all(&settings(server), &statements);
    // ROLLBACK does not undo PREPARE. If another client of a connection pooler has a statement with this name, it stays.
    let is_other = result.as_ref().is_err_and(|error| error.state.is(SqlState::STATEMENT_EXISTS));
    if !is_other && !session.is_stopped() {
        _ = session.run_all(&[], &[&format!("DEALLOCATE {NAME}")]);
    }
    Ok(result?.lines())
}

/// Returns the settings of the transaction: SQL expressions.
fn settings(server: &Server) -> Vec<String> {
    let always = SETTINGS.iter().map(|(name, value)| format!("pg_catalog.set_config('{name}', '{value}', true)"));
    let if_permitted = QUIET.iter().filter(|(name, _)| server.setting(name).is_some()).map(|(name, value)| {
        format!(
            "CASE WHEN pg_catalog.has_parameter_privilege('{name}', 'SET') THEN pg_catalog.set_config('{name}', '{value}', true) END"
        )
    });
    always.chain(if_permitted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_complete_statement_with_a_plan_is_accepted() {
        let server = Server { settings: [("track_activity_query_size".into(), "1kB".into())].into(), ..Server::default() };
        for (text, reason) in [
            ("<insufficient privilege>", Reason::Hidden),
            ("COMMIT", Reason::NoPlanNodes),
            ("-- end\nrollback", Reason::NoPlanNodes),
            ("COPY t TO STDOUT", Reason::Utility),
            ("EXPLAIN ANALYZE SELECT 1", Reason::Several),
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

    #[test]
    fn only_known_settings_are_changed() {
        let server = Server { settings: [("pg_stat_statements.track".into(), "top".into())].into(), ..Server::default() };
        let settings = settings(&server).join(" ");
        assert!(settings.contains("'lock_timeout'") && settings.contains("has_parameter_privilege('pg_stat_statements.track'"));
        assert!(!settings.contains("auto_explain"), "{settings}");
    }
}
