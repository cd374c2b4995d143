//! What is run: the statement as EXPLAIN gets it, and the baseline without EXPLAIN.
//!
//! A statement with parameters is prepared, and EXECUTE gives it the values. The server then chooses between a custom plan
//! (planned for these values, at each execution) and a generic plan (planned once, for any values). It chooses anew at
//! each execution. After the fifth, it compares the costs of both plans. These stay the same for the same values, and so
//! does its choice. So `plan_cache_mode` stays as it is: another value would also change the plans of queries in functions.

use super::NOT_ROLLED_BACK;
use super::script::Script;
use super::session::{CUSTOM, RunSession, Whose};
use crate::error::{Error, require};
use crate::plan::{Explained, Node};
use crate::server::own_sql::MARK;
use crate::tokens::Tokens;

/// The statement of a measurement. Its parts exist on the server after [`Subject::prepare`].
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// the text after EXPLAIN
    pub explained: String,
    /// the text of a run without EXPLAIN
    pub baseline: String,
    /// the server's choice of a plan for the values: custom or generic
    pub plan_mode: Option<&'static str>,
    /// the baseline skips the statement's rows, which would be sent otherwise
    pub skips_rows: bool,
    /// each run of the baseline plans the statement
    pub is_planned: bool,
    /// time to plan it, with warm caches
    pub planning_ms: Option<f64>,
    /// structure of its plan
    pub shape: String,
}

impl Subject {
    /// Returns an error if this is the root of another plan.
    pub fn check_shape(&self, root: &Node) -> Result<(), Error> {
        let hint = "only runs of the same plan can be compared: run ANALYZE on the tables, or wait for autovacuum";
        require(root.shape() == self.shape, "the plan changes from run to run", hint)
    }

    /// Prepares the statement and its baseline, with names that end with `suffix`. Runs neither. `skips_rows`: the
    /// baseline sends no rows, if that is possible.
    pub fn prepare(
        session: &mut RunSession,
        script: &Script,
        suffix: &str,
        skips_rows: bool,
    ) -> Result<Subject, Error> {
        let names = ["statement", "baseline"].map(|kind| format!("pg_timing_{kind}{suffix}"));
        let [statement_name, baseline_name] = names.each_ref().map(String::as_str);
        let values = script.values.as_deref();
        let execute = |name: &str| format!("EXECUTE {MARK} {name}{}", values.unwrap_or_default());
        let mut subject = Subject::default();
        if script.is_create() {
            // PREPARE does not support it.
            may_create(session, script)?;
            subject.baseline = script.query.clone();
        } else {
            session.prepare(Whose::Users, statement_name, &script.prepare_as(statement_name, &script.query))?;
            subject.baseline = execute(statement_name);
        }
        session.connection.hides_statements = values.is_some();
        subject.explained = if values.is_some() { execute(statement_name) } else { script.query.clone() };
        session.plan_of(&subject.explained)?;
        let has_parameters = values.is_some_and(|values| !values.is_empty());
        if has_parameters {
            subject.plan_mode = Some(session.plan_mode_of(&subject.explained, statement_name)?);
        }
        let plan = session.plan_of(&subject.explained)?;
        // A generic plan is planned once.
        subject.planning_ms = plan.planning_ms.filter(|_| subject.plan_mode.is_none());
        subject.is_planned = script.is_create() || subject.plan_mode == Some(CUSTOM);
        subject.shape = plan.root.shape();
        if script.may_store_rows() || !skips_rows {
            return Ok(subject);
        }
        // The baseline sends no rows, if a statement without output has the same plan.
        for query in script.without_output() {
            if session.prepare(Whose::Users, baseline_name, &script.prepare_as(baseline_name, &query)).is_err() {
                continue;
            }
            let wrapped = execute(baseline_name);
            let mode = has_parameters.then(|| session.plan_mode_of(&wrapped, baseline_name).ok()).flatten();
            // The OFFSET adds a Limit node. Below it, the plan must stay the same.
            let is_same = |plan: Explained| plan.root.children.iter().any(|below| below.shape() == subject.shape);
            if mode == subject.plan_mode && session.plan_of(&wrapped).is_ok_and(is_same) {
                (subject.baseline, subject.skips_rows) = (wrapped, true);
                return Ok(subject);
            }
            session.deallocate_last()?;
        }
        Ok(subject)
    }
}

/// Refuses CREATE TABLE AS, unless the user permits it: EXPLAIN ANALYZE creates the table even in a read-only transaction. SELECT
/// INTO does the same, but the server refuses its first run, which is one without EXPLAIN.
fn may_create(session: &RunSession, script: &Script) -> Result<(), Error> {
    let hint = format!("--allow-writes runs CREATE TABLE AS, and rolls it back; {NOT_ROLLED_BACK}");
    require(session.options.allow_writes, "the statement creates a table or another object", hint)?;
    let is_materialized = Tokens::of(&script.query).nth(1).is_some_and(|token| token.is("MATERIALIZED"));
    require(
        !is_materialized || session.connection.server_version() < 170_000,
        "PostgreSQL 17 and later fill a materialized view in another way than EXPLAIN ANALYZE does",
        "measure CREATE TABLE AS with the same query",
    )
}
