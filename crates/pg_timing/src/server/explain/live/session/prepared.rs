//! Prepared statements of a session: what the server knows about them. Nothing here runs a statement of the user.

use super::RunSession;
use crate::error::Error;
use crate::server::connection::{Output, Sql};
use crate::server::explain::live::explain_json::parse;
use crate::server::explain::live::own_statements;
use crate::server::explain::live::plan_mode::PlanMode;
use crate::server::explain::plan::Explained;

impl RunSession<'_> {
    /// Returns the plan of an EXPLAIN without ANALYZE.
    pub fn plan_of(&mut self, explain: &Sql) -> Result<Explained, Error> {
        let rows = self.in_rolled_back_transaction(|session| session.run(explain.clone(), Output::Keep))?;
        parse(&rows.lines())
    }

    /// Runs a PREPARE. ROLLBACK does not undo it.
    pub fn prepare(&mut self, sql: &str) -> Result<(), Error> {
        self.in_rolled_back_transaction(|session| session.run(sql, Output::Discard)).map(|_| ())
    }

    /// Prepares pg_timing's own statements.
    pub fn prepare_own(&mut self) -> Result<(), Error> {
        own_statements::prepare_all()?.iter().try_for_each(|sql| self.prepare(sql))
    }

    /// Returns the types of a prepared statement's parameters.
    pub fn types_of(&mut self, name: &str) -> Result<Vec<String>, Error> {
        let sql = self.about_prepared("pg_catalog.unnest(parameter_types)::pg_catalog.text", name)?;
        let rows = self.in_rolled_back_transaction(|session| session.run(&sql, Output::Keep))?;
        Ok(rows.rows.into_iter().flatten().flatten().collect())
    }

    /// Returns the server's choice of a plan for this prepared statement, after five executions. `None` without parameters.
    /// `explain` is an EXPLAIN without ANALYZE, which runs nothing. The server counts it like an execution.
    pub fn plan_mode_of(&mut self, explain: &Sql, name: &str) -> Result<Option<PlanMode>, Error> {
        // The server plans for the values five times, and then chooses.
        const EXECUTIONS: usize = 6;
        if self.types_of(name)?.is_empty() {
            return Ok(None);
        }
        let sql = self.about_prepared("generic_plans::pg_catalog.text", name)?;
        let rows = self.in_rolled_back_transaction(|session| {
            for _ in 0..EXECUTIONS {
                session.run(explain.clone(), Output::Discard)?;
            }
            session.run(&sql, Output::Keep)
        })?;
        Ok(Some(if rows.value() == Some("0") { PlanMode::Custom } else { PlanMode::Generic }))
    }

    fn about_prepared(&self, column: &str, name: &str) -> Result<String, Error> {
        let literal = self.literal(Some(name))?;
        Ok(format!("SELECT {column} FROM pg_catalog.pg_prepared_statements WHERE name = {literal}"))
    }

    /// Removes these prepared statements.
    pub fn deallocate(&mut self, names: &[String]) -> Result<(), Error> {
        names.iter().try_for_each(|name| self.run(&format!("DEALLOCATE {name}"), Output::Discard).map(|_| ()))
    }

    /// Removes pg_timing's own statements.
    pub fn deallocate_own(&mut self) -> Result<(), Error> {
        self.deallocate(&own_statements::NAMES.map(String::from))
    }
}
