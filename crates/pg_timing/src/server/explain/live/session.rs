//! A session on the server that runs a statement and rolls it back.

use super::explain_json::{parse, parse_executed};
use super::statement::Statement;
use super::timing::Timing;
use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output, Rows};
use crate::server::explain::plan::{Explained, Plan};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What ROLLBACK does not undo.
pub const NOT_ROLLED_BACK: &str = "not rolled back: sequences, side effects outside the database, dead tuples";

/// What the runs may do.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// the statement may write; it is always rolled back
    pub allow_writes: bool,
    /// time limit of one run
    pub limit: Duration,
}

/// A session with the prepared statements of one measurement.
pub struct Session<'a> {
    pub connection: &'a mut Connection,
    options: RunOptions,
    /// time limit of one run: `options.limit`, or the user's statement_timeout if it is shorter
    limit: Duration,
    stop: &'a AtomicBool,
    /// start of the current transaction
    started: Instant,
}

// Names of prepared statements.
const BASELINE: &str = "pg_timing_baseline";
const EMPTY: &str = "pg_timing_empty";
pub const BARE_CALLS: &str = "pg_timing_bare_calls";

const STOPPED: &str = "stopped; the statement was canceled on the server";

impl<'a> Session<'a> {
    /// Opens a session. A shorter statement_timeout of the user stays in force.
    pub fn new(
        connection: &'a mut Connection,
        options: RunOptions,
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>, Error> {
        let mut session = Session { connection, limit: options.limit, options, stop, started: Instant::now() };
        let query = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'";
        let timeout_ms = session.run(query, Output::Keep)?.value().and_then(|ms| ms.parse().ok());
        if let Some(ms) = timeout_ms.filter(|&ms: &u64| ms > 0) {
            session.limit = session.limit.min(Duration::from_millis(ms));
        }
        Ok(session)
    }

    fn run(&mut self, sql: &str, output: Output) -> Result<Rows, Error> {
        self.connection.run(sql, output, self.stop)
    }

    /// Runs `work` in a transaction and rolls it back, also after an error.
    fn in_rolled_back_transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.is_stopped() {
            return Err(Error::new("stopped", self.what_was_changed()));
        }
        let mode = if self.options.allow_writes { "READ WRITE" } else { "READ ONLY" };
        // A standby server refuses READ WRITE even for a statement that only reads.
        self.run(&format!("BEGIN {mode}"), Output::Discard)?;
        let limit = self.limit.as_millis();
        self.started = Instant::now();
        let result = self
            .run(&format!("SET LOCAL statement_timeout = {limit}"), Output::Discard)
            .and_then(|_| work(self))
            .map_err(|error| self.with_better_hint(error));
        let rollback = self.run("ROLLBACK", Output::Discard);
        result.and_then(|value| rollback.map(|_| value))
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn what_was_changed(&self) -> &'static str {
        match self.options.allow_writes {
            true => "the statement's changes were rolled back",
            false => "nothing was changed",
        }
    }

    /// Replaces the message or hint of errors that pg_timing knows more about than the server.
    fn with_better_hint(&self, error: Error) -> Error {
        let Error { what, hint, state } = error;
        let (what, hint) = match &state {
            state if state.is(SqlState::READ_ONLY) => {
                (what, format!("--allow-writes runs statements that write, and rolls them back; {NOT_ROLLED_BACK}"))
            }
            state if state.is(SqlState::QUERY_CANCELED) && self.is_stopped() => {
                (STOPPED.into(), self.what_was_changed().into())
            }
            // Another user may have canceled the statement earlier.
            state if state.is(SqlState::QUERY_CANCELED) && self.started.elapsed() >= self.limit => (
                format!("one run takes longer than {} s", self.limit.as_secs_f64()),
                match self.limit < self.options.limit {
                    true => "this limit is the server's statement_timeout for this user".into(),
                    false => "set a longer limit with --limit SECONDS".into(),
                },
            ),
            state if state.is(SqlState::NO_SUCH_STATEMENT) || state.is(SqlState::STATEMENT_EXISTS) => (
                what,
                "a connection pooler gives each transaction another session: connect to the server directly".into(),
            ),
            _ => (what, hint),
        };
        Error { what, hint, state }
    }

    fn plan_of(&mut self, statement: &Statement) -> Result<Explained, Error> {
        let sql = statement.explain("FORMAT JSON");
        let rows = self.in_rolled_back_transaction(|session| session.run(&sql, Output::Keep))?;
        parse(&rows.lines())
    }

    /// Prepares the baseline statement, an empty statement, and a statement of bare calls.
    pub fn prepare(&mut self, statement: &Statement, bare_calls: &Statement) -> Result<(), Error> {
        let plan = self.plan_of(statement);
        if let Some(error) = statement.rejection(plan.as_ref().err().cloned()) {
            return Err(error);
        }
        let plan = plan?;
        let without_output = statement.without_output();
        // A subquery with an OFFSET past the end sends no rows. Use it only if the plan below stays the same.
        let keeps_plan = self
            .plan_of(&without_output)
            .is_ok_and(|wrapped| wrapped.plan.plans.iter().any(|below| below.shape() == plan.plan.shape()));
        let baseline = if keeps_plan { &without_output } else { statement }.prepare_as(BASELINE);
        let all = [baseline, format!("PREPARE {EMPTY} AS SELECT"), bare_calls.prepare_as(BARE_CALLS)];
        all.iter().try_for_each(|sql| self.run(sql, Output::Discard).map(|_| ())).map_err(|error| {
            let error = self.with_better_hint(error);
            statement.rejection(Some(error.clone())).unwrap_or(error)
        })
    }

    /// Removes the prepared statements, so that another statement can follow.
    pub fn deallocate(&mut self) -> Result<(), Error> {
        [BASELINE, EMPTY, BARE_CALLS]
            .iter()
            .try_for_each(|name| self.run(&format!("DEALLOCATE {name}"), Output::Discard).map(|_| ()))
    }

    /// Returns the times of an empty statement in ms.
    pub fn round_trips_ms(&mut self, count: usize) -> Result<Vec<f64>, Error> {
        // The first execution plans the statement and is not counted.
        self.execute(EMPTY)?;
        (0..count).map(|_| Ok(self.execute(EMPTY)?.0)).collect()
    }

    /// Executes a prepared statement. Returns its client-side time in ms and the number of rows it sent.
    pub fn execute(&mut self, name: &str) -> Result<(f64, u64), Error> {
        let sql = format!("EXECUTE {name}");
        self.in_rolled_back_transaction(|session| {
            let start = Instant::now();
            let rows = session.run(&sql, Output::Discard)?;
            Ok((start.elapsed().as_secs_f64() * 1e3, rows.count))
        })
    }

    /// Executes the statement without EXPLAIN. Returns the time in ms and the number of rows it sent.
    pub fn baseline(&mut self) -> Result<(f64, u64), Error> {
        self.execute(BASELINE)
    }

    /// Runs EXPLAIN ANALYZE with these options and returns the executed plan.
    pub fn explain(&mut self, statement: &Statement, options: &str, timing: Option<&Timing>) -> Result<Plan, Error> {
        let sql = statement.explain(&format!("ANALYZE, {options}, FORMAT JSON"));
        let rows = self.in_rolled_back_transaction(|session| {
            if let Some(timing) = timing {
                session.run(&timing.set_local(), Output::Discard)?;
            }
            session.run(&sql, Output::Keep)
        })?;
        parse_executed(&rows.lines())
    }
}
