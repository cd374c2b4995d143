//! Runs of a statement, each in its own transaction, with their times.

use super::{RunSession, Whose};
use crate::error::Error;
use crate::plan::Plan;
use crate::server::connection::{Output, Sql};
use crate::server::explain::live::explain_json::{parse_executed, parse_planning_ms};
use crate::server::explain::live::own_statements::{EMPTY, bare_calls};
use crate::server::explain::live::run_results::BaselineRun;
use crate::server::explain::live::statement::explain_analyze;
use crate::server::explain::live::timing::Timing;
use crate::server::own_sql::{self, MARK};
use std::time::Instant;

impl RunSession<'_> {
    /// Returns the times of an empty statement in ms.
    pub fn round_trips_ms(&mut self, count: usize) -> Result<Vec<f64>, Error> {
        // The first execution plans the statement and is not counted.
        self.execute(EMPTY)?;
        (0..count).map(|_| Ok(self.execute(EMPTY)?.0)).collect()
    }

    /// Executes a prepared statement. Returns its client-side time in ms and the number of rows it sent.
    pub fn execute(&mut self, name: &str) -> Result<(f64, u64), Error> {
        self.in_one_process(|session| session.execute_once(name))
    }

    /// Executes a prepared statement several times in one transaction. Returns its client-side times in ms.
    pub fn execute_often(&mut self, name: &str, times: usize) -> Result<Vec<f64>, Error> {
        self.in_one_process(|session| (0..times).map(|_| session.execute_once(name).map(|(ms, _)| ms)).collect())
    }

    /// Runs `work` in a transaction of pg_timing's own. The user's settings must not change the work that it does.
    fn in_one_process<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.in_rolled_back_transaction(Whose::Own, |session| {
            own_sql::ONE_PROCESS.iter().try_for_each(|sql| session.run(*sql, Output::Discard).map(|_| ()))?;
            work(session)
        })
    }

    /// Executes one of pg_timing's own statements.
    fn execute_once(&mut self, name: &str) -> Result<(f64, u64), Error> {
        self.timed(Sql::new(format!("EXECUTE {MARK} {name}")))
    }

    fn timed(&mut self, sql: Sql) -> Result<(f64, u64), Error> {
        let start = Instant::now();
        let rows = self.run(sql, Output::Discard)?;
        Ok((start.elapsed().as_secs_f64() * 1e3, rows.count))
    }

    /// Runs a statement without EXPLAIN. `planning` is an EXPLAIN with SUMMARY if the server plans the statement anew. It
    /// runs directly before, because the machine can change its speed, and because CREATE TABLE AS cannot be explained
    /// after the run.
    pub fn baseline(&mut self, sql: Sql, planning: Option<Sql>) -> Result<BaselineRun, Error> {
        self.in_rolled_back_transaction(Whose::Users, |session| {
            let planning_ms = match planning {
                Some(explain) => Some(parse_planning_ms(&session.run(explain, Output::Keep)?.lines())?),
                None => None,
            };
            session.limit_statement()?;
            let (client_ms, rows) = session.timed(sql)?;
            Ok(BaselineRun { client_ms, rows, planning_ms })
        })
    }

    /// Runs an EXPLAIN ANALYZE in text format and returns what it prints.
    pub fn plan_text(&mut self, explain: Sql) -> Result<String, Error> {
        self.in_rolled_back_transaction(Whose::Users, |session| {
            session.limit_statement()?;
            Ok(session.run(explain, Output::Keep)?.lines())
        })
    }

    /// Runs an EXPLAIN ANALYZE and returns the executed plan, and its JSON.
    pub fn explain_analyze(&mut self, explain: Sql, timing: Option<&Timing>) -> Result<(Plan, String), Error> {
        let rows = self.in_rolled_back_transaction(Whose::Users, |session| {
            for sql in timing.map(Timing::set_local).unwrap_or_default() {
                session.run(&sql, Output::Discard)?;
            }
            session.limit_statement()?;
            session.run(explain, Output::Keep)
        })?;
        let json = rows.lines();
        let plan = parse_executed(&json, timing.map_or(self.has_fast_timing, Timing::is_fast_timing))?;
        Ok((plan, json))
    }

    /// Runs EXPLAIN ANALYZE of the loop of bare calls.
    pub fn explain_bare_calls(&mut self) -> Result<Plan, Error> {
        let sql = explain_analyze("TIMING ON", bare_calls()?.text());
        let rows = self.in_one_process(|session| session.run(&sql, Output::Keep))?;
        parse_executed(&rows.lines(), self.has_fast_timing)
    }
}
