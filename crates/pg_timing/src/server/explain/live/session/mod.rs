//! A session on the server that runs statements and rolls them back.

mod hints;
mod prepared;
mod timed;

pub use prepared::quoted;

use crate::error::Error;
use crate::report::PlanFormat;
use crate::server::connection::{Connection, Output, Rows, Sql};
use crate::server::explain::live::auto_explain;
use crate::server::explain::live::options::RunOptions;
use crate::server::explain::live::setting::{self, Setting};
use crate::server::explain::live::statement_timeout;
use crate::server::own_sql;
use crate::server::settings::FAST_TIMING_METHOD;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whose statements a transaction runs. Both have the user's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// pg_timing's own statements: the search_path is empty
    Own,
    /// the user's statement, with the user's search_path
    Users,
}

/// A session with the prepared statements of one measurement.
pub struct RunSession<'a> {
    pub connection: &'a mut Connection,
    options: RunOptions,
    /// the settings that the user gave with the statement
    settings: &'a [Setting],
    /// names of the statements that were prepared
    prepared: Vec<String>,
    /// time limit of one run of the user's statement: `options.limit`, or the user's statement_timeout if it is shorter
    statement_limit: Duration,
    /// time limit in force: `options.limit` or `statement_limit`
    limit: Duration,
    stop: &'a AtomicBool,
    /// pg_fast_timing is loaded, so it times the nodes unless a run selects another method
    has_fast_timing: bool,
    /// start of this limit
    started: Instant,
}

impl<'a> RunSession<'a> {
    /// Opens a session with these settings. A shorter statement_timeout of the user stays in force.
    pub fn new(
        connection: &'a mut Connection,
        options: RunOptions,
        settings: &'a [Setting],
        stop: &'a AtomicBool,
    ) -> Result<RunSession<'a>, Error> {
        let limit = options.limit;
        connection.set_limit(limit);
        let mut session = RunSession {
            connection,
            options,
            settings,
            prepared: Vec::new(),
            statement_limit: limit,
            limit,
            stop,
            has_fast_timing: false,
            started: Instant::now(),
        };
        let timeout = statement_timeout::begin(session.connection, session.mode(), limit, settings, stop)?;
        session.statement_limit = statement_timeout::parse(&timeout).map_or(limit, |timeout| timeout.min(limit));
        session.apply_settings(Whose::Own)?;
        let settings = session.run(&own_sql::settings(&[FAST_TIMING_METHOD]), Output::Keep)?;
        session.has_fast_timing = settings.pairs().first().is_some_and(|(_, method)| method != "off");
        session.run(own_sql::ROLLBACK, Output::Discard)?;
        Ok(session)
    }

    fn mode(&self) -> &'static str {
        // A standby server refuses READ WRITE even for a statement that only reads.
        if self.options.allow_writes { "READ WRITE" } else { "READ ONLY" }
    }

    /// Begins a transaction with all settings, and with the time limit of pg_timing's own statements.
    fn begin(&mut self, whose: Whose) -> Result<(), Error> {
        self.run(&own_sql::begin(self.mode()), Output::Discard)?;
        self.run(own_sql::EMPTY_SEARCH_PATH, Output::Discard)?;
        self.set_limit(self.options.limit)?;
        self.apply_settings(whose)
    }

    fn set_limit(&mut self, limit: Duration) -> Result<(), Error> {
        (self.limit, self.started) = (limit, Instant::now());
        self.run(&statement_timeout::set_local(limit), Output::Discard).map(|_| ())
    }

    /// Sets the time limit of the user's statement until the end of the transaction.
    fn limit_statement(&mut self) -> Result<(), Error> {
        self.set_limit(self.statement_limit)
    }

    fn apply_settings(&mut self, whose: Whose) -> Result<(), Error> {
        // Before the user's settings: a SET ROLE can take the right to do this.
        self.switch_off_auto_explain()?;
        if whose == Whose::Users {
            self.run(own_sql::USERS_SEARCH_PATH, Output::Discard)?;
        }
        setting::apply(self.settings, self.connection, self.stop)?;
        if whose == Whose::Own {
            // The user may have set them.
            self.run(own_sql::EMPTY_SEARCH_PATH, Output::Discard)?;
            self.run(own_sql::USUAL_PLANNER, Output::Discard)?;
        }
        Ok(())
    }

    pub fn run(&mut self, sql: impl Into<Sql>, output: Output) -> Result<Rows, Error> {
        self.connection.run(sql, output, self.stop)
    }

    /// Runs a statement that ends or removes something. If the user has stopped the runs already, it is not canceled.
    fn run_also_if_stopped(&mut self, sql: &str) -> Result<Rows, Error> {
        let never = AtomicBool::new(false);
        let stop = if self.is_stopped() { &never } else { self.stop };
        self.connection.run(sql, Output::Discard, stop)
    }

    /// Runs `work` in a transaction and rolls it back, also after an error.
    pub fn in_rolled_back_transaction<T>(
        &mut self,
        whose: Whose,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.is_stopped() {
            return Err(Error::new("stopped", self.what_was_changed()));
        }
        let result = self.begin(whose).and_then(|()| work(self)).map_err(|error| self.with_better_hint(error));
        let rollback = self.run_also_if_stopped(own_sql::ROLLBACK);
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

    /// Returns the format of the plan that the report must contain.
    pub fn document(&self) -> Option<PlanFormat> {
        self.options.document
    }

    pub fn allows_writes(&self) -> bool {
        self.options.allow_writes
    }

    /// Returns the value as an SQL literal.
    pub fn literal(&self, value: Option<&str>) -> Result<String, Error> {
        self.connection.literal(value)
    }
}
