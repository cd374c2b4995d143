//! A session on the server, which runs a statement and takes back what it did.

use super::Statement;
use super::Wishes;
use super::bare_call;
use super::plans::{explained, no_plan};
use super::timing::Timing;
use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output, Rows};
use crate::server::explain::Explained;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Of what is rolled back.
pub const STAYS: &str =
    "what stays then are sequences, what functions do outside of the database, and dead rows until VACUUM";

pub struct Session<'a> {
    pub connection: &'a mut Connection,
    wishes: Wishes,
    /// for one run
    limit: Duration,
    stop: &'a AtomicBool,
    /// the run at hand
    began: Instant,
}

const PLAIN: &str = "pg_timing_plain";
const NOTHING: &str = "pg_timing_nothing";
pub(super) const BARE: &str = "pg_timing_bare";
const STOPPED: &str = "stopped; the statement was cancelled on the server";

impl<'a> Session<'a> {
    pub fn new(connection: &'a mut Connection, wishes: Wishes, stop: &'a AtomicBool) -> Result<Session<'a>, Error> {
        let mut session = Session { connection, limit: wishes.limit, wishes, stop, began: Instant::now() };
        session.keep_limit()?;
        Ok(session)
    }

    fn run(&mut self, sql: &str, output: Output) -> Result<Rows, Error> {
        self.connection.run(sql, output, self.stop)
    }

    /// A shorter limit that the server has for this user stays.
    fn keep_limit(&mut self) -> Result<(), Error> {
        let asked = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'statement_timeout'";
        let set = self.run(asked, Output::Keep)?.value().and_then(|ms| ms.parse().ok()).filter(|&ms: &u64| ms > 0);
        self.limit = set.map_or(self.limit, |ms| self.limit.min(Duration::from_millis(ms)));
        Ok(())
    }

    /// In a transaction that is rolled back, whatever comes of it.
    fn undone<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.is_stopped() {
            return Err(Error::new(STOPPED, self.what_stays()));
        }
        let mode = if self.wishes.allow_writes { "READ WRITE" } else { "READ ONLY" };
        // A standby refuses READ WRITE even for a statement that only reads.
        self.run(&format!("BEGIN {mode}"), Output::Discard)?;
        let limit = self.limit.as_millis();
        self.began = Instant::now();
        let done = self
            .run(&format!("SET LOCAL statement_timeout = {limit}"), Output::Discard)
            .and_then(|_| work(self))
            .map_err(|error| self.explained(error));
        let back = self.run("ROLLBACK", Output::Discard);
        done.and_then(|value| back.map(|_| value))
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn what_stays(&self) -> &'static str {
        match self.wishes.allow_writes {
            true => "what it wrote was rolled back",
            false => "nothing was changed",
        }
    }

    /// Errors that we know more about than the server.
    fn explained(&self, error: Error) -> Error {
        let Error { what, hint, state } = error;
        let (what, hint) = match &state {
            state if state.is(SqlState::READ_ONLY) => {
                (what, format!("a statement that writes is run with --allow-writes, and rolled back; {STAYS}"))
            }
            state if state.is(SqlState::QUERY_CANCELED) && self.is_stopped() => {
                (STOPPED.into(), self.what_stays().into())
            }
            // Somebody else may have cancelled it.
            state if state.is(SqlState::QUERY_CANCELED) && self.began.elapsed() >= self.limit => (
                format!("one run takes longer than {} s", self.limit.as_secs_f64()),
                match self.limit < self.wishes.limit {
                    true => "that is the server's statement_timeout for this user".into(),
                    false => "--limit SECONDS gives it more".into(),
                },
            ),
            state if state.is(SqlState::NO_SUCH_STATEMENT) || state.is(SqlState::STATEMENT_EXISTS) => (
                what,
                "a pooler in between gives each transaction another session: connect to the server itself".into(),
            ),
            _ => (what, hint),
        };
        Error { what, hint, state }
    }

    fn planned(&mut self, statement: &Statement) -> Result<Explained, Error> {
        let sql = statement.explained("FORMAT JSON");
        let plan = self.undone(|session| session.run(&sql, Output::Keep))?;
        explained(&plan.lines())
    }

    /// The statement, as it is run plain.
    pub fn prepare(&mut self, statement: &Statement) -> Result<(), Error> {
        let plan = self.planned(statement);
        if let Some(error) = statement.unfit(plan.as_ref().err().cloned()) {
            return Err(error);
        }
        let plan = plan?;
        let quiet = statement.without_output();
        // What may stand in a subquery returns nothing to us; the plan below has to be the same one.
        let same = self
            .planned(&quiet)
            .is_ok_and(|wrapped| wrapped.plan.plans.iter().any(|below| below.shape() == plan.plan.shape()));
        let bare = bare_call::statement()?.prepared_as(BARE);
        let plain = if same { &quiet } else { statement }.prepared_as(PLAIN);
        let all = [plain, format!("PREPARE {NOTHING} AS SELECT"), bare];
        all.iter().try_for_each(|sql| self.run(sql, Output::Discard).map(|_| ())).map_err(|error| {
            let error = self.explained(error);
            statement.unfit(Some(error.clone())).unwrap_or(error)
        })
    }

    /// What was prepared: another statement may follow.
    pub fn forget(&mut self) -> Result<(), Error> {
        [PLAIN, NOTHING, BARE]
            .iter()
            .try_for_each(|name| self.run(&format!("DEALLOCATE {name}"), Output::Discard).map(|_| ()))
    }

    /// ms that it takes to have an empty statement run, each time.
    pub fn round_trips(&mut self, times: usize) -> Result<Vec<f64>, Error> {
        // Planned by the first.
        self.executed(NOTHING)?;
        (0..times).map(|_| Ok(self.executed(NOTHING)?.0)).collect()
    }

    /// ms, and rows that were sent; planned before, so that it is only run.
    pub fn executed(&mut self, name: &str) -> Result<(f64, u64), Error> {
        let sql = format!("EXECUTE {name}");
        self.undone(|session| {
            let start = Instant::now();
            let rows = session.run(&sql, Output::Discard)?;
            Ok((start.elapsed().as_secs_f64() * 1e3, rows.count))
        })
    }

    pub fn plain(&mut self) -> Result<(f64, u64), Error> {
        self.executed(PLAIN)
    }

    /// EXPLAIN ANALYZE: the plan, and the ms that it says.
    pub fn explain(
        &mut self,
        statement: &Statement,
        options: &str,
        timing: Option<&Timing>,
    ) -> Result<(Explained, f64), Error> {
        let sql = statement.explained(&format!("ANALYZE, {options}, FORMAT JSON"));
        let plan = self.undone(|session| {
            if let Some(timing) = timing {
                session.run(&timing.chosen(), Output::Discard)?;
            }
            session.run(&sql, Output::Keep)
        })?;
        let plan = explained(&plan.lines())?;
        let ms = plan.execution_ms.ok_or_else(|| no_plan("it has no Execution Time"))?;
        Ok((plan, ms))
    }
}
