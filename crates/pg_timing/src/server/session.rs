//! Runs queries that change nothing, with a time limit.

use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output, Rows};
use crate::server::own_sql;
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
    /// settings of each transaction that this user may be permitted to set
    quiet: Vec<(&'static str, &'static str)>,
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
    /// as far as the server has these settings and this user may set them.
    pub fn keep_quiet(&mut self, settings: &BTreeMap<String, String>) {
        self.skip_counting = settings.contains_key(FAST_TIMING_METHOD);
        self.quiet = QUIET.into_iter().filter(|(name, _)| settings.contains_key(*name)).collect();
    }

    /// Runs the next queries also after Ctrl-C.
    pub fn ignore_stop(&mut self) {
        static NEVER: AtomicBool = AtomicBool::new(false);
        self.stop = &NEVER;
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Connection {
        self.connection
    }

    /// Returns the values of these settings, as far as the server has them.
    pub fn settings(&mut self, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
        Ok(self.query(&own_sql::settings(names))?.pairs().into_iter().collect())
    }

    /// Returns the rows of one query.
    ///
    /// Each query runs in its own read-only transaction, because statistics do not change within a transaction. Settings
    /// end with the transaction, because a connection pooler can give the session to another client.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        self.run(&own_sql::begin("READ ONLY"))?;
        let result = self.query_in_transaction(sql);
        let end = self.run(own_sql::ROLLBACK);
        result.and_then(|rows| end.map(|_| rows))
    }

    fn query_in_transaction(&mut self, sql: &str) -> Result<Rows, Error> {
        self.run(own_sql::EMPTY_SEARCH_PATH)?;
        self.run(own_sql::USUAL_PLANNER)?;
        self.run(&own_sql::set_local("statement_timeout", &LIMIT.as_millis().to_string()))?;
        if self.skip_counting {
            // Every user may do that. A query that sets it would itself be counted.
            self.run(&own_sql::set_local(FAST_TIMING_METHOD, "off"))?;
        }
        if !self.quiet.is_empty() {
            self.run(&own_sql::set_all_if_permitted(&self.quiet))?;
        }
        self.run(sql)
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
