//! Prepared statements of a session: what the server knows about them. Nothing here runs a statement of the user.

use super::{RunSession, Whose};
use crate::error::Error;
use crate::plan::Explained;
use crate::server::connection::{Output, Sql};
use crate::server::explain::live::explain_json::parse;
use crate::server::explain::live::own_statements;
use crate::server::explain::live::plan_mode::PlanMode;
use crate::server::own_sql::{self, MARK};
use std::time::Duration;

/// Time limit of a DEALLOCATE, which takes microseconds.
const REMOVAL_LIMIT: Duration = Duration::from_secs(5);

impl RunSession<'_> {
    /// Returns the plan of an EXPLAIN without ANALYZE.
    pub fn plan_of(&mut self, explain: &Sql) -> Result<Explained, Error> {
        let rows =
            self.in_rolled_back_transaction(Whose::Users, |session| session.run(explain.clone(), Output::Keep))?;
        parse(&rows.lines())
    }

    /// Runs a PREPARE. ROLLBACK does not undo it.
    pub fn prepare(&mut self, whose: Whose, name: &str, sql: &str) -> Result<(), Error> {
        self.in_rolled_back_transaction(whose, |session| {
            session.run(sql, Output::Discard)?;
            // Only now, because a statement with this name can belong to another client of a connection pooler.
            session.prepared.push(name.into());
            Ok(())
        })
    }

    /// Prepares pg_timing's own statements.
    pub fn prepare_own(&mut self) -> Result<(), Error> {
        own_statements::prepare_all()?.iter().try_for_each(|(name, sql)| self.prepare(Whose::Own, name, sql))
    }

    /// Returns the types of a prepared statement's parameters.
    pub fn types_of(&mut self, name: &str) -> Result<Vec<String>, Error> {
        let sql = own_sql::types_of_prepared(&self.literal(Some(name))?);
        let rows = self.in_rolled_back_transaction(Whose::Own, |session| session.run(&sql, Output::Keep))?;
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
        self.in_rolled_back_transaction(Whose::Users, |session| {
            (0..EXECUTIONS).try_for_each(|_| session.run(explain.clone(), Output::Discard).map(|_| ()))
        })?;
        let sql = own_sql::generic_plans_of_prepared(&self.literal(Some(name))?);
        let rows = self.in_rolled_back_transaction(Whose::Own, |session| session.run(&sql, Output::Keep))?;
        Ok(Some(if rows.value() == Some("0") { PlanMode::Custom } else { PlanMode::Generic }))
    }

    /// Removes the statement that was prepared last.
    pub fn deallocate_last(&mut self) -> Result<(), Error> {
        match self.prepared.pop() {
            Some(name) => self.run_also_if_stopped(&format!("DEALLOCATE {MARK} {}", quoted(&name))).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// Removes the prepared statements, also after an error: a connection pooler gives the session to another client.
impl Drop for RunSession<'_> {
    fn drop(&mut self) {
        // The time limit of a run can be an hour.
        self.connection.lower_limit(REMOVAL_LIMIT);
        while !self.prepared.is_empty() {
            // An error means that the connection is lost, or that a pooler uses another session now.
            _ = self.deallocate_last();
        }
    }
}

/// Returns the name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!([quoted("q"), quoted("a\"b")], ["\"q\"", "\"a\"\"b\""]);
    }
}
