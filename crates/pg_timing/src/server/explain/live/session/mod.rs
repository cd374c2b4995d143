//! A session on the server that runs a statement and rolls it back.

mod prepared;

use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output, Rows, Sql};
use crate::server::explain::live::explain_json::{parse_executed, parse_planning_ms};
use crate::server::explain::live::script::Script;
use crate::server::explain::live::setting::{self, Setting};
use crate::server::explain::live::subject::{PlanMode, Subject};
use crate::server::explain::live::timing::{self, Timing};
use crate::server::explain::live::{auto_explain, bare_call, probe};
use crate::server::explain::plan::Plan;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What ROLLBACK does not undo.
pub const NOT_ROLLED_BACK: &str =
    "not rolled back: sequences, effects of functions outside the transaction, dead tuples";

/// What the runs may do.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// the statement may write; it is always rolled back
    pub allow_writes: bool,
    /// time limit of one run
    pub limit: Duration,
    /// time for all runs
    pub time: Duration,
    /// the server's auto_explain times the runs without EXPLAIN, too
    pub switch_off_auto_explain: bool,
}

impl RunOptions {
    /// Returns options for a server without auto_explain.
    pub fn new(allow_writes: bool, limit: Duration, time: Duration) -> RunOptions {
        RunOptions { allow_writes, limit, time, switch_off_auto_explain: false }
    }
}

/// A session with the prepared statements of one measurement.
pub struct Session<'a> {
    pub connection: &'a mut Connection,
    options: RunOptions,
    /// the settings that the user gave with the statement
    settings: &'a [Setting],
    /// the plans of all runs
    plan_mode: Option<PlanMode>,
    subject: Subject,
    /// time limit of one run: `options.limit`, or the user's statement_timeout if it is shorter
    limit: Duration,
    stop: &'a AtomicBool,
    /// pg_fast_timing is loaded, so it times the nodes unless a run selects another method
    has_fast_timing: bool,
    /// start of the current transaction
    started: Instant,
}

// Names of prepared statements.
const EMPTY: &str = "pg_timing_empty";
pub const BARE_CALLS: &str = "pg_timing_bare_calls";
pub const PROBE: &str = "pg_timing_probe";

/// For pg_timing's own statements: neither compilation nor parallel workers. With a limit of 0 workers, debug_parallel_query
/// starts none.
const OWN_SETTINGS: &str =
    "SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)";

const STOPPED: &str = "stopped; the statement was canceled on the server";

impl<'a> Session<'a> {
    /// Opens a session with these settings. A shorter statement_timeout of the user stays in force.
    pub fn new(
        connection: &'a mut Connection,
        options: RunOptions,
        settings: &'a [Setting],
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>, Error> {
        let limit = options.limit;
        connection.set_limit(limit);
        let mut session = Session {
            connection,
            options,
            settings,
            plan_mode: None,
            subject: Subject::default(),
            limit,
            stop,
            has_fast_timing: false,
            started: Instant::now(),
        };
        session.begin()?;
        let timeout_ms = session.setting("statement_timeout")?.and_then(|ms| ms.parse().ok());
        if let Some(ms) = timeout_ms.filter(|&ms: &u64| ms > 0) {
            session.limit = session.limit.min(Duration::from_millis(ms));
        }
        session.has_fast_timing = session.setting(timing::METHOD)?.is_some_and(|method| method != "off");
        session.run("ROLLBACK", Output::Discard)?;
        Ok(session)
    }

    /// Begins a transaction, and sets everything except the time limit.
    fn begin(&mut self) -> Result<(), Error> {
        let mode = if self.options.allow_writes { "READ WRITE" } else { "READ ONLY" };
        // A standby server refuses READ WRITE even for a statement that only reads.
        self.run(format!("BEGIN {mode}").as_str(), Output::Discard)?;
        // Before the user's settings: a SET ROLE can take the right to do this.
        self.switch_off_auto_explain()?;
        setting::apply(self.settings, self.connection, self.stop)?;
        match self.plan_mode {
            Some(mode) => self.run(&mode.set_local(), Output::Discard).map(|_| ()),
            None => Ok(()),
        }
    }

    fn setting(&mut self, name: &str) -> Result<Option<String>, Error> {
        let query = format!("SELECT setting FROM pg_catalog.pg_settings WHERE name = '{name}'");
        Ok(self.run(&query, Output::Keep)?.value().map(String::from))
    }

    pub fn run(&mut self, sql: impl Into<Sql>, output: Output) -> Result<Rows, Error> {
        self.connection.run(sql, output, self.stop)
    }

    /// Runs `work` in a transaction and rolls it back, also after an error.
    pub fn in_rolled_back_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.is_stopped() {
            return Err(Error::new("stopped", self.what_was_changed()));
        }
        let limit = self.limit.as_millis();
        self.started = Instant::now();
        let result = self
            .begin()
            .and_then(|()| self.run(&format!("SET LOCAL statement_timeout = {limit}"), Output::Discard))
            .and_then(|_| work(self))
            .map_err(|error| self.with_better_hint(error));
        let rollback = self.run("ROLLBACK", Output::Discard);
        result.and_then(|value| rollback.map(|_| value))
    }

    fn switch_off_auto_explain(&mut self) -> Result<(), Error> {
        match self.options.switch_off_auto_explain {
            true => self.run(auto_explain::SWITCH_OFF, Output::Discard).map(|_| ()),
            false => Ok(()),
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn what_was_changed(&self) -> &'static str {
        match self.options.allow_writes {
            true => "the statement's changes were rolled back",
            false => "all runs were read-only and were rolled back",
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
                    true => "this limit is the statement_timeout of this user, or of a SET before the statement".into(),
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

    pub fn allows_writes(&self) -> bool {
        self.options.allow_writes
    }

    /// Returns the value as an SQL literal.
    pub fn literal(&self, value: Option<&str>) -> Result<String, Error> {
        self.connection.literal(value)
    }

    /// Lets all following runs use this kind of plan.
    pub fn keep_plan_mode(&mut self, mode: Option<PlanMode>) {
        self.plan_mode = mode;
    }

    /// Prepares the statement of the script, an empty statement, a statement of bare calls, and the probe.
    pub fn prepare_all(&mut self, script: &Script) -> Result<(), Error> {
        self.subject = Subject::prepare(self, script)?;
        self.prepare(&format!("PREPARE {EMPTY} AS SELECT"))?;
        self.prepare(&bare_call::statement()?.prepare_as(BARE_CALLS))?;
        self.prepare(&probe::statement()?.prepare_as(PROBE))
    }

    /// Returns the server's choice of a plan for the values. `None` without values.
    pub fn plan_mode(&self) -> Option<PlanMode> {
        self.plan_mode
    }

    /// Removes the prepared statements, so that another statement can follow.
    pub fn deallocate_all(&mut self) -> Result<(), Error> {
        let names = [self.subject.prepared(), &[EMPTY, BARE_CALLS, PROBE].map(String::from)].concat();
        self.deallocate(&names)
    }

    /// Returns the times of an empty statement in ms.
    pub fn round_trips_ms(&mut self, count: usize) -> Result<Vec<f64>, Error> {
        // The first execution plans the statement and is not counted.
        self.execute(EMPTY)?;
        (0..count).map(|_| Ok(self.execute(EMPTY)?.0)).collect()
    }

    /// Executes a prepared statement. Returns its client-side time in ms and the number of rows it sent.
    pub fn execute(&mut self, name: &str) -> Result<(f64, u64), Error> {
        self.in_rolled_back_transaction(|session| {
            session.run(OWN_SETTINGS, Output::Discard)?;
            session.execute_once(name)
        })
    }

    /// Executes a prepared statement several times in one transaction. Returns its client-side times in ms.
    pub fn execute_often(&mut self, name: &str, times: usize) -> Result<Vec<f64>, Error> {
        self.in_rolled_back_transaction(|session| {
            session.run(OWN_SETTINGS, Output::Discard)?;
            (0..times).map(|_| session.execute_once(name).map(|(ms, _)| ms)).collect()
        })
    }

    /// Executes one of pg_timing's own statements. The user's settings must not change the work that it does.
    fn execute_once(&mut self, name: &str) -> Result<(f64, u64), Error> {
        self.timed(Sql::new(format!("EXECUTE {name}")))
    }

    fn timed(&mut self, sql: Sql) -> Result<(f64, u64), Error> {
        let start = Instant::now();
        let rows = self.run(sql, Output::Discard)?;
        Ok((start.elapsed().as_secs_f64() * 1e3, rows.count))
    }

    /// Runs the statement without EXPLAIN. Returns the time in ms and the number of rows it sent.
    pub fn baseline(&mut self) -> Result<(f64, u64), Error> {
        let sql = self.subject.baseline();
        self.in_rolled_back_transaction(|session| session.timed(sql))
    }

    /// Returns the planning times of the baseline in ms, if each baseline run includes them.
    pub fn planning_ms(&mut self, count: usize) -> Result<Option<Vec<f64>>, Error> {
        let Some(sql) = self.subject.planning() else { return Ok(None) };
        self.in_rolled_back_transaction(|session| {
            let mut planning = || parse_planning_ms(&session.run(sql.clone(), Output::Keep)?.lines());
            (0..count).map(|_| planning()).collect::<Result<_, _>>().map(Some)
        })
    }

    /// Runs EXPLAIN ANALYZE of the statement with these options and returns the executed plan.
    pub fn explain(&mut self, options: &str, timing: Option<&Timing>) -> Result<Plan, Error> {
        let sql = self.subject.explain(&explain_options(options));
        self.explain_analyze(sql, timing)
    }

    /// Runs EXPLAIN ANALYZE of the loop of bare calls.
    pub fn explain_bare_calls(&mut self) -> Result<Plan, Error> {
        let sql = bare_call::statement()?.explain(&explain_options("TIMING ON"));
        let rows = self.in_rolled_back_transaction(|session| {
            session.run(OWN_SETTINGS, Output::Discard)?;
            session.run(&sql, Output::Keep)
        })?;
        parse_executed(&rows.lines(), self.has_fast_timing)
    }

    fn explain_analyze(&mut self, sql: Sql, timing: Option<&Timing>) -> Result<Plan, Error> {
        let rows = self.in_rolled_back_transaction(|session| {
            if let Some(timing) = timing {
                session.run(&timing.set_local(), Output::Discard)?;
            }
            session.run(sql, Output::Keep)
        })?;
        parse_executed(&rows.lines(), timing.map_or(self.has_fast_timing, Timing::is_fast_timing))
    }
}

fn explain_options(options: &str) -> String {
    format!("ANALYZE, {options}, FORMAT JSON")
}
