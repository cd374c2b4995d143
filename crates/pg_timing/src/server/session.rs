//! Runs queries that change nothing, with a time limit.

use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output, Rows};
use crate::server::own_queries::marked;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time limit of a query. Queries of statistics take milliseconds; the limit ends a wait for a lock.
const LIMIT: Duration = Duration::from_secs(10);

/// The setting of pg_fast_timing that selects the timing method.
pub const FAST_TIMING_METHOD: &str = "pg_fast_timing.method";

/// A session on a connection, for queries only.
pub struct Session<'a> {
    connection: &'a mut Connection,
    stop: &'a AtomicBool,
    /// settings of each transaction: expressions
    quiet: Vec<String>,
    /// pg_fast_timing must not count the queries
    skip_counting: bool,
}

/// Values that keep the queries out of pg_stat_statements and of auto_explain's log.
const QUIET: [(&str, &str); 2] = [("pg_stat_statements.track", "none"), ("auto_explain.log_min_duration", "-1")];

impl<'a> Session<'a> {
    /// Uses a connection. `stop` cancels a running query.
    pub fn new(connection: &'a mut Connection, stop: &'a AtomicBool) -> Session<'a> {
        Session { connection, stop, quiet: Vec::new(), skip_counting: false }
    }

    /// Keeps the next queries out of the server's statistics of statements, out of its log and out of pg_fast_timing's counters,
    /// if this user may do that. `has_setting` returns whether the server has a setting.
    pub fn keep_quiet(&mut self, has_setting: impl Fn(&str) -> bool) {
        self.skip_counting = has_setting(FAST_TIMING_METHOD);
        self.quiet = QUIET
            .iter()
            .filter(|(name, _)| has_setting(name))
            .map(|(name, value)| {
                format!(
                    "CASE WHEN pg_catalog.has_parameter_privilege('{name}', 'SET') \
                     THEN pg_catalog.set_config('{name}', '{value}', true) END"
                )
            })
            .collect();
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Connection {
        self.connection
    }

    /// Returns the values of these settings.
    pub fn settings(&mut self, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
        self.connection.settings(names, self.stop)
    }

    /// Returns the rows of one query.
    ///
    /// Each query runs in its own read-only transaction, because statistics do not change within a transaction. Settings
    /// end with the transaction, because a connection pooler can give the session to another client.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        self.run("BEGIN READ ONLY")?;
        let result = self.run_in_transaction(sql);
        let end = self.run("ROLLBACK");
        result.and_then(|rows| end.map(|_| rows))
    }

    fn run_in_transaction(&mut self, sql: &str) -> Result<Rows, Error> {
        if self.skip_counting {
            // Every user may do that. A query that sets it would itself be counted.
            self.run(&format!("SET LOCAL {FAST_TIMING_METHOD} = off"))?;
        }
        let limit = LIMIT.as_millis();
        // An empty search_path prevents calls of functions and operators that users created.
        let settings = [
            "pg_catalog.set_config('search_path', '', true)".to_string(),
            format!("pg_catalog.set_config('statement_timeout', '{limit}', true)"),
        ];
        let settings: Vec<&str> = settings.iter().chain(&self.quiet).map(String::as_str).collect();
        self.run(&marked(&format!("SELECT {}", settings.join(", "))))?;
        self.run(&marked(sql))
    }

    fn run(&mut self, sql: &str) -> Result<Rows, Error> {
        if self.stop.load(Ordering::Relaxed) {
            // The connection ends soon, and the transaction with it.
            let state = SqlState(SqlState::QUERY_CANCELED.into());
            return Err(Error { state, ..Error::new("stopped", "the queries changed nothing") });
        }
        self.connection.run(sql, Output::Keep, self.stop)
    }
}
