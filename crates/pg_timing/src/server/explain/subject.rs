//! What is run: the statement as EXPLAIN gets it, and the baseline without EXPLAIN.
//!
//! A statement with parameters is prepared, and EXECUTE gives it the values. The server then chooses between a custom plan
//! (planned for these values, at each execution) and a generic plan (planned once, for any values). It chooses anew at
//! each execution. After the fifth, it compares the costs of both plans. These stay the same for the same values, and so
//! does its choice. So `plan_cache_mode` stays as it is: another value would also change the plans of queries in functions.

use super::NOT_ROLLED_BACK;
use super::script::Script;
use super::session::{PlanMode, RunSession, Whose};
use super::setting::quoted;
use super::statement::{Statement, explain, explain_analyze};
use crate::error::Error;
use crate::plan::Explained;
use crate::server::connection::Sql;
use crate::server::own_sql::MARK;

// Names of prepared statements.
const BASELINE: &str = "pg_timing_baseline";
const STATEMENT: &str = "pg_timing_statement";

/// A plan without ANALYZE runs nothing.
const PLAN: &str = "FORMAT JSON";
const PLAN_WITH_TIME: &str = "SUMMARY, FORMAT JSON";

/// The statement of a measurement. Its parts exist on the server after [`Subject::prepare`].
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// the text after EXPLAIN
    explained: String,
    /// the text of a run without EXPLAIN
    baseline: String,
    /// the texts contain values that errors must not show
    has_values: bool,
    plan_mode: Option<PlanMode>,
    is_planned_in_baseline: bool,
}

/// A prepared statement with its name as the server stores it, and the text with its values: `(1, 'x')`, or nothing.
struct Executed {
    name: String,
    statement: Statement,
    values: String,
}

impl Subject {
    /// Returns an EXPLAIN ANALYZE of the statement.
    pub fn explain_analyze(&self, options: &str) -> Sql {
        self.sql(explain_analyze(options, &self.explained))
    }

    /// Returns the same in the format that people read.
    pub fn explain_as_text(&self) -> Sql {
        self.explain("ANALYZE, TIMING ON, FORMAT TEXT")
    }

    fn explain(&self, options: &str) -> Sql {
        self.sql(explain(options, &self.explained))
    }

    /// Returns the statement without EXPLAIN.
    pub fn baseline(&self) -> Sql {
        self.sql(self.baseline.clone())
    }

    /// Returns an EXPLAIN that shows how long the server plans the baseline, if each baseline run includes that time.
    pub fn planning(&self) -> Option<Sql> {
        self.is_planned_in_baseline.then(|| self.sql(explain(PLAN_WITH_TIME, &self.baseline)))
    }

    /// Returns the server's choice of a plan for the values. `None` without values.
    pub fn plan_mode(&self) -> Option<PlanMode> {
        self.plan_mode
    }

    fn sql(&self, text: String) -> Sql {
        if self.has_values { Sql::with_values(text) } else { Sql::new(text) }
    }

    /// Prepares the statement and its baseline. Runs neither.
    pub fn prepare(session: &mut RunSession, script: &Script) -> Result<Subject, Error> {
        let statement = script.statement();
        // EXPLAIN ANALYZE creates the table even in a read-only transaction.
        if statement.creates_table() && !session.options().allow_writes {
            return Err(Error::new(
                "the statement creates a table or a materialized view",
                format!("--allow-writes runs such statements, and rolls them back; {NOT_ROLLED_BACK}"),
            ));
        }
        if statement.creates_view() && session.connection.server_version() >= 170_000 {
            return Err(Error::new(
                "PostgreSQL 17 and later fill a materialized view in another way than EXPLAIN ANALYZE does",
                "measure CREATE TABLE AS with the same query",
            ));
        }
        let has_values = !script.values().is_empty();
        let mut subject = Subject { explained: statement.text().into(), has_values, ..Subject::default() };
        for line in script.prepared() {
            prepare(session, &line.name, &line.sql, &line.statement)?;
        }
        if has_values {
            prepare(session, STATEMENT, &statement.prepare_as(STATEMENT), statement)?;
        }
        let executed = executed(session, script)?;
        if let Some(Executed { name, values, .. }) = executed.as_ref().filter(|_| has_values) {
            subject.explained = format!("EXECUTE {MARK} {}{values}", quoted(name));
        }
        let plan = session.plan_of(&subject.explain(PLAN));
        if let Some(error) = statement.rejection(plan.as_ref().err().cloned()) {
            return Err(error);
        }
        let mut plan = plan?;
        if let Some(executed) = &executed {
            subject.plan_mode = session.plan_mode_of(&subject.explain(PLAN), &executed.name)?;
            plan = session.plan_of(&subject.explain(PLAN))?;
        }
        subject.prepare_baseline(session, statement, executed.as_ref(), &plan.plan.shape())?;
        Ok(subject)
    }

    fn prepare_baseline(
        &mut self,
        session: &mut RunSession,
        statement: &Statement,
        executed: Option<&Executed>,
        shape: &str,
    ) -> Result<(), Error> {
        // PREPARE does not support a statement that creates a table.
        self.is_planned_in_baseline = statement.creates_table() || self.plan_mode == Some(PlanMode::Custom);
        self.baseline.clone_from(&self.explained);
        if statement.creates_table() {
            return Ok(());
        }
        let (query, values) = executed.map_or((statement, ""), |executed| (&executed.statement, &executed.values));
        let types = executed.map_or(Ok(Vec::new()), |executed| session.types_of(&executed.name))?;
        for without_output in query.without_output() {
            let sql = without_output.prepare_with_types(BASELINE, &types);
            if prepare(session, BASELINE, &sql, &without_output).is_err() {
                continue;
            }
            self.baseline = format!("EXECUTE {MARK} {BASELINE}{values}");
            let wrapped = self.sql(explain(PLAN, &self.baseline));
            let mode = session.plan_mode_of(&wrapped, BASELINE);
            let plan = session.plan_of(&wrapped);
            // The OFFSET adds a Limit node. Below it, the plan must stay the same.
            let is_same = |plan: Explained| plan.plan.plans.iter().any(|below| below.shape() == shape);
            if mode.is_ok_and(|mode| mode == self.plan_mode) && plan.is_ok_and(is_same) {
                return Ok(());
            }
            session.deallocate_last()?;
        }
        match executed {
            Some(_) => self.baseline.clone_from(&self.explained),
            None => {
                prepare(session, BASELINE, &statement.prepare_as(BASELINE), statement)?;
                self.baseline = format!("EXECUTE {MARK} {BASELINE}");
            }
        }
        Ok(())
    }
}

fn prepare(session: &mut RunSession, name: &str, sql: &str, statement: &Statement) -> Result<(), Error> {
    session.prepare(Whose::Users, name, sql).map_err(|error| statement.rejection(Some(error.clone())).unwrap_or(error))
}

/// Returns the prepared statement that the script executes.
fn executed(session: &RunSession, script: &Script) -> Result<Option<Executed>, Error> {
    let statement = script.statement();
    if !script.values().is_empty() {
        let literals: Result<Vec<_>, _> =
            script.values().iter().map(|value| session.literal(value.as_deref())).collect();
        let values = format!("({})", literals?.join(", "));
        return Ok(Some(Executed { name: STATEMENT.into(), statement: statement.clone(), values }));
    }
    Ok(statement.executes().and_then(|name| script.prepared_as(name)).map(|line| Executed {
        name: line.name.clone(),
        statement: line.statement.clone(),
        values: statement.arguments().unwrap_or_default().into(),
    }))
}
