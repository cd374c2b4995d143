//! A session on the server that runs statements, each in its own transaction, and rolls them back.

use super::script::{Setting, explain, explain_analyze};
use super::{NOT_ROLLED_BACK, RunOptions};
use crate::error::{Error, SqlState};
use crate::plan::unusable::{MAX_FIGURE, check_figure, check_run};
use crate::plan::{Explained, Plan, Unusable};
use crate::report::Range;
use crate::server::connection::{Connection, Rows, SUPPORTED_SERVERS};
use crate::server::own_sql::{self, MARK};
use crate::statistics::{ERROR, median_interval};
use std::time::{Duration, Instant};

/// Time limit of a DEALLOCATE, which takes microseconds.
const REMOVAL_LIMIT: Duration = Duration::from_secs(5);

// Names of pg_timing's own prepared statements.
const EMPTY: &str = "pg_timing_empty";
const BARE_CALLS: &str = "pg_timing_bare_calls";
/// Options of EXPLAIN. A plan without ANALYZE runs nothing.
const PLAN: &str = "SUMMARY, FORMAT JSON";
/// Rows of the loop of bare calls. It takes some ms, or 60 ms where a clock read takes 800 ns.
const BARE_CALL_ROWS: u32 = 20_000;

/// auto_explain with `log_analyze` times each statement, also without EXPLAIN. So the baseline would contain the overhead
/// that is to be measured. This switches it off until the end of the transaction.
const SWITCH_AUTO_EXPLAIN_OFF: &str = "SET LOCAL /* pg_timing */ auto_explain.log_analyze = off";
/// The user's statement_timeout applies only to the user's statement. All other queries have pg_timing's limit. A short timeout
/// of the user would cancel them.
const STATEMENT_TIMEOUT: &str = "statement_timeout";

// Hints.
const ROLLED_BACK: &str = "all runs were rolled back";
const POOLER: &str = "if a connection pooler gives each transaction another session, connect to the server directly";
const OUR_LIMIT: &str = "set a longer limit with --limit SECONDS";
const USERS_LIMIT: &str =
    "this limit is the statement_timeout of this user or database, or of a SET before the statement";

/// Whose statements a transaction runs. Both have the user's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// pg_timing's own statements: the search_path is empty
    Own,
    /// the user's statement, with the user's search_path
    Users,
}

/// The server's choices of a plan for a prepared statement with parameters.
pub const CUSTOM: &str = "custom";
pub const GENERIC: &str = "generic";

/// A session with the prepared statements of one measurement.
pub struct RunSession<'a> {
    pub connection: &'a mut Connection,
    pub options: RunOptions,
    /// the settings of the statement that runs next
    pub users: UsersSettings<'a>,
    /// the server's auto_explain times the runs without EXPLAIN, too
    pub must_switch_off_auto_explain: bool,
    /// pg_fast_timing is loaded, so it times the nodes unless a run selects another method
    pub has_fast_timing: bool,
    /// names of the statements that were prepared
    prepared: Vec<String>,
    /// start of the time limit
    started: Instant,
}

/// The settings that the user gave with a statement.
#[derive(Clone, Copy, Debug)]
pub struct UsersSettings<'a> {
    pub settings: &'a [Setting],
    /// time limit of one run of the statement: `options.limit`, or the user's statement_timeout if it is shorter
    limit: Duration,
}

impl<'a> RunSession<'a> {
    /// Opens a session without settings.
    pub fn new(connection: &'a mut Connection, options: RunOptions) -> Result<RunSession<'a>, Error> {
        // An unsupported server gets no statement.
        connection.supported_version()?;
        connection.limit = options.limit;
        Ok(RunSession {
            connection,
            options,
            users: UsersSettings { settings: &[], limit: options.limit },
            must_switch_off_auto_explain: false,
            has_fast_timing: false,
            prepared: Vec::new(),
            started: Instant::now(),
        })
    }

    /// Lets the next statements have these settings. A shorter statement_timeout of the user stays in force.
    pub fn use_settings(&mut self, settings: &'a [Setting]) -> Result<(), Error> {
        let most = self.options.limit;
        // These statements take microseconds: the user's timeout already applies to some of them.
        self.connection.execute(&own_sql::begin("READ ONLY"))?;
        let mut limits = settings.iter().filter(|setting| setting.name == STATEMENT_TIMEOUT);
        let limited = limits.try_for_each(|setting| self.connection.execute(&setting.sql));
        let timeout = limited.and_then(|()| self.connection.run(&format!("SHOW {MARK} statement_timeout")));
        let timeout = self.connection.roll_back(timeout)?;
        let timeout = timeout.value().and_then(|shown| humantime::parse_duration(shown).ok());
        let limit = timeout.filter(|timeout| !timeout.is_zero()).map_or(most, |timeout| timeout.min(most));
        self.users = UsersSettings { settings, limit };
        Ok(())
    }

    /// Begins a transaction with all settings, and with the time limit of pg_timing's own statements.
    fn begin(&mut self, whose: Whose) -> Result<(), Error> {
        // A standby server refuses READ WRITE even for a statement that only reads.
        let mode = if self.options.allow_writes { "READ WRITE" } else { "READ ONLY" };
        self.connection.begin(mode, self.options.limit)?;
        // Before the user's settings: a SET ROLE can take the right to do this.
        if self.must_switch_off_auto_explain {
            self.connection.execute(SWITCH_AUTO_EXPLAIN_OFF)?;
        }
        if whose == Whose::Users {
            self.connection.execute(own_sql::USERS_SEARCH_PATH)?;
        }
        for setting in self.users.settings.iter().filter(|setting| setting.name != STATEMENT_TIMEOUT) {
            self.connection.execute(&setting.sql)?;
        }
        if whose == Whose::Own {
            // The user may have set them.
            self.connection.execute(own_sql::EMPTY_SEARCH_PATH)?;
            self.connection.execute(own_sql::USUAL_PLANNER)?;
        }
        Ok(())
    }

    /// Sets the time limit of the user's statement.
    pub fn limit_statement(&mut self) -> Result<(), Error> {
        self.started = Instant::now();
        self.connection.execute(&own_sql::set_local(STATEMENT_TIMEOUT, self.users.limit.as_millis()))
    }

    /// Runs `work` in a transaction and rolls it back, also after an error.
    pub fn in_rolled_back_transaction<T>(
        &mut self,
        whose: Whose,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.connection.is_stopped() {
            return Err(Error::new("stopped", ROLLED_BACK));
        }
        self.started = Instant::now();
        let result = self.begin(whose).and_then(|()| work(self)).map_err(|error| self.with_better_hint(error));
        self.connection.roll_back(result)
    }

    /// Runs one of pg_timing's own statements in its own transaction, without parallel processes. Returns its client-side time in ms.
    fn run_own(&mut self, sql: &str) -> Result<(f64, Rows), Error> {
        self.in_rolled_back_transaction(Whose::Own, |session| {
            own_sql::ONE_PROCESS.iter().try_for_each(|sql| session.connection.execute(sql))?;
            session.timed(true, sql)
        })
    }

    /// Replaces the message or hint of errors that pg_timing knows more about than the server.
    fn with_better_hint(&self, error: Error) -> Error {
        let limit = self.users.limit;
        let (what, hint) = match error.state.0.as_str() {
            SqlState::READ_ONLY => {
                (None, format!("--allow-writes runs statements that write, and rolls them back; {NOT_ROLLED_BACK}"))
            }
            SqlState::SYNTAX => (None, SUPPORTED_STATEMENTS.into()),
            SqlState::NO_SUCH_STATEMENT | SqlState::STATEMENT_EXISTS => (None, POOLER.into()),
            SqlState::QUERY_CANCELED if self.connection.is_stopped() => {
                (Some("stopped; the statement was canceled on the server".into()), ROLLED_BACK.into())
            }
            // Another user may have canceled the statement earlier.
            SqlState::QUERY_CANCELED if self.started.elapsed() >= limit => {
                let hint = if limit == self.options.limit { OUR_LIMIT } else { USERS_LIMIT };
                (Some(format!("one run takes longer than {} s", limit.as_secs_f64())), hint.into())
            }
            _ => return error,
        };
        Error { what: what.unwrap_or(error.what), hint, state: error.state }
    }

    // Prepared statements: what the server knows about them. Nothing here runs a statement of the user.

    /// Returns the plan of a statement, which is not run.
    pub fn plan_of(&mut self, statement: &str) -> Result<Explained, Error> {
        let explain = explain(PLAN, statement);
        parse(&self.in_rolled_back_transaction(Whose::Users, |session| session.connection.run(&explain))?.lines())
    }

    /// Runs a PREPARE. ROLLBACK does not undo it.
    pub fn prepare(&mut self, whose: Whose, name: &str, sql: &str) -> Result<(), Error> {
        self.in_rolled_back_transaction(whose, |session| {
            session.connection.execute(sql).map(|()| session.prepared.push(name.into()))
        })
    }

    /// Prepares pg_timing's own statements: an empty one, and a loop of bare calls.
    pub fn prepare_own(&mut self) -> Result<(), Error> {
        self.prepare(Whose::Own, EMPTY, &format!("PREPARE {MARK} {EMPTY} AS SELECT"))?;
        let bare_calls = own_sql::count_rows(BARE_CALL_ROWS);
        self.prepare(Whose::Own, BARE_CALLS, &format!("PREPARE {MARK} {BARE_CALLS} AS {bare_calls}"))
    }

    /// Returns the server's choice of a plan for this prepared statement, after five executions. `execute` runs it with values. An
    /// EXPLAIN without ANALYZE runs nothing, but the server counts it like an execution.
    pub fn plan_mode_of(&mut self, execute: &str, name: &str) -> Result<&'static str, Error> {
        // The server plans for the values five times, and then chooses.
        const EXECUTIONS: usize = 6;
        let explain = explain(PLAN, execute);
        self.in_rolled_back_transaction(Whose::Users, |session| {
            (0..EXECUTIONS).try_for_each(|_| session.connection.execute(&explain))
        })?;
        let (_, rows) = self.run_own(&own_sql::generic_plans_of_prepared(name))?;
        Ok(if rows.value() == Some("0") { CUSTOM } else { GENERIC })
    }

    /// Removes the statement that was prepared last.
    pub fn deallocate_last(&mut self) -> Result<(), Error> {
        let name = self.prepared.pop();
        name.map_or(Ok(()), |name| self.connection.execute_always(&format!("DEALLOCATE {MARK} {name}")))
    }

    // Runs with their times.

    fn timed(&mut self, keep: bool, sql: &str) -> Result<(f64, Rows), Error> {
        let start = Instant::now();
        let rows = self.connection.run_and(keep, sql)?;
        Ok((start.elapsed().as_secs_f64() * 1e3, rows))
    }

    /// Returns the time of an empty statement in ms, from this number of executions.
    pub fn round_trip_ms(&mut self, count: usize) -> Result<Range, Error> {
        let mut run = |_| Ok(self.run_own(&format!("EXECUTE {MARK} {EMPTY}"))?.0);
        // The first execution plans the statement and is not counted.
        run(0)?;
        let times: Result<Vec<f64>, Error> = (0..count).map(run).collect();
        Ok(median_interval(&times?, ERROR))
    }

    /// Returns what EXPLAIN ANALYZE with these options adds to one call in a loop that does nothing else, in ms: clock reads, and counting. Noise
    /// can make it negative.
    pub fn bare_call_ms(&mut self, round_trip_ms: f64, options: &str) -> Result<f64, Error> {
        let baseline_ms = self.run_own(&format!("EXECUTE {MARK} {BARE_CALLS}"))?.0 - round_trip_ms;
        let (_, rows) = self.run_own(&explain_analyze(options, &own_sql::count_rows(BARE_CALL_ROWS)))?;
        let timed_ms = executed(parse(&rows.lines())?, self.has_fast_timing)?.execution_ms;
        Ok((timed_ms - baseline_ms) / f64::from(BARE_CALL_ROWS))
    }

    /// Runs a statement without EXPLAIN. `is_planned`: the server plans it anew. An EXPLAIN directly before shows the planning time,
    /// because the machine can change its speed.
    pub fn baseline(&mut self, sql: &str, is_planned: bool, round_trip_ms: f64) -> Result<Baseline, Error> {
        self.in_rolled_back_transaction(Whose::Users, |session| {
            let explain = is_planned.then(|| explain(PLAN, sql));
            let planning_ms =
                explain.map(|sql| parse_planning_ms(&session.connection.run(&sql)?.lines())).transpose()?;
            session.limit_statement()?;
            let (client_ms, rows) = session.timed(false, sql)?;
            let ms = (client_ms - round_trip_ms - planning_ms.unwrap_or(0.0)).max(0.0);
            Ok(Baseline { ms, planning_ms, rows: rows.count })
        })
    }

    /// Runs an EXPLAIN ANALYZE with these settings, and returns what it prints.
    pub fn explain(&mut self, explain: &str, settings: &[String]) -> Result<String, Error> {
        self.in_rolled_back_transaction(Whose::Users, |session| {
            settings.iter().try_for_each(|sql| session.connection.execute(sql))?;
            session.limit_statement()?;
            Ok(session.connection.run(explain)?.lines())
        })
    }
}

/// A run without EXPLAIN.
pub struct Baseline {
    /// time of the client, without the round trip and planning
    pub ms: f64,
    /// planning time, if the client's time includes it
    pub planning_ms: Option<f64>,
    /// rows that it sent to the client
    pub rows: u64,
}

/// A hint for texts that are not one statement with a plan.
const SUPPORTED_STATEMENTS: &str = "give one statement that has a plan: SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE, MERGE, \
     EXECUTE, CREATE TABLE AS; without EXPLAIN, and without commands and variables of psql";

/// Parses EXPLAIN's JSON. It is a list with one entry for each statement that rules make of the original.
pub fn parse(json: &str) -> Result<Explained, Error> {
    if serde_json::from_str::<Vec<String>>(json).is_ok_and(|plans| !plans.is_empty()) {
        let what =
            "the statement has no plan: it is a utility statement, or the relation that it creates exists already";
        return Err(Error::new(what, SUPPORTED_STATEMENTS));
    }
    let plans: Vec<Explained> = serde_json::from_str(json).map_err(|error| not_understood(&error.to_string()))?;
    <[Explained; 1]>::try_from(plans).map(|[plan]| plan).map_err(|plans| {
        Error::new(
            format!("rules rewrite the statement into {} statements", plans.len()),
            "pg_timing compares runs of one plan: use a table without such a rule, or run the rule's statement directly",
        )
    })
}

/// Parses the JSON of EXPLAIN with SUMMARY and returns the planning time in ms.
fn parse_planning_ms(json: &str) -> Result<f64, Error> {
    let ms = parse(json)?.planning_ms;
    check_figure(ms, MAX_FIGURE, || "Planning Time".into()).map_err(impossible)?;
    ms.ok_or_else(|| not_understood("it has no Planning Time"))
}

/// Returns an executed plan, from the JSON of EXPLAIN ANALYZE.
///
/// pg_fast_timing may estimate the times. Servers before 18 do not show this in the plan, so the caller says it.
pub fn executed(explained: Explained, fast_timing: bool) -> Result<Plan, Error> {
    explained.execution_ms.ok_or_else(|| not_understood("it has no Execution Time"))?;
    let mut plan = Plan::new(explained);
    plan.uses_fast_timing |= fast_timing;
    check_run(&plan).map_err(impossible)?;
    Ok(plan)
}

fn impossible(why: Unusable) -> Error {
    Error::new(Error::from(why).what, "the server's clock may be faulty: run pg_timing check on the server's host")
}

fn not_understood(why: &str) -> Error {
    Error::new(
        format!("pg_timing does not understand the server's EXPLAIN: {why}"),
        format!("{SUPPORTED_SERVERS}; check the server's version with SHOW server_version"),
    )
}

/// Removes the prepared statements, also after an error: a connection pooler gives the session to another client.
impl Drop for RunSession<'_> {
    fn drop(&mut self) {
        // The time limit of a run can be an hour.
        self.connection.limit = REMOVAL_LIMIT;
        while !self.prepared.is_empty() {
            // An error means that the connection is lost, or that a pooler uses another session now.
            _ = self.deallocate_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"Plan": {"Node Type": "Result"}}"#;

    fn parse_executed(json: &str, fast_timing: bool) -> Result<Plan, Error> {
        executed(parse(json)?, fast_timing)
    }

    #[test]
    fn exactly_one_plan_is_accepted() {
        assert!(parse(&format!("[{PLAN}]")).is_ok());
        for (json, what) in [
            (format!("[{PLAN}, {PLAN}]"), "rules rewrite the statement into 2 statements"),
            ("[]".into(), "rules rewrite the statement into 0 statements"),
            (
                "[{}]".into(),
                "pg_timing does not understand the server's EXPLAIN: missing field `Plan` at line 1 column 3",
            ),
        ] {
            assert_eq!(parse(&json).unwrap_err().what, what);
        }
    }

    #[test]
    fn an_executed_plan_has_an_execution_time() {
        let error = parse_executed(&format!("[{PLAN}]"), false).unwrap_err();
        assert!(error.what.ends_with("it has no Execution Time"), "{}", error.what);
        let timed = PLAN.replace("}}", r#"}, "Execution Time": 6.25}"#);
        assert_eq!(parse_executed(&format!("[{timed}]"), false).unwrap().execution_ms, 6.25);
    }

    #[test]
    fn a_plan_with_a_summary_has_a_planning_time() {
        let planned = |ms: &str| PLAN.replace("}}", &format!(r#"}}, "Planning Time": {ms}}}"#));
        assert_eq!(parse_planning_ms(&format!("[{}]", planned("0.25"))).unwrap(), 0.25);
        for plan in [PLAN, &planned("-1.0"), &planned("1e300")] {
            assert!(parse_planning_ms(&format!("[{plan}]")).is_err(), "{plan}");
        }
    }

    /// Returns the plan of a sort with these figures, and a scan below it that took 1 ms.
    fn sort(total_ms: &str, rows: &str, loops: &str, execution_ms: &str) -> String {
        format!(
            r#"[{{"Plan": {{"Node Type": "Sort", "Actual Total Time": {total_ms}, "Actual Rows": {rows}, "Actual Loops": {loops}, "Plans": [
                {{"Node Type": "Seq Scan", "Alias": "t", "Actual Total Time": 1.0, "Actual Rows": 5, "Actual Loops": 1}}]}},
                "Execution Time": {execution_ms}}}]"#
        )
    }

    #[test]
    fn impossible_figures_are_refused() {
        assert!(parse_executed(&sort("2.0", "5", "1", "3.0"), false).is_ok());
        for (total_ms, rows, loops, execution_ms, why) in [
            ("-2.0", "5", "1", "3.0", "Actual Total Time of Sort is -2.0"),
            ("1e300", "5", "1", "3.0", "Actual Total Time of Sort is 1e300"),
            ("2.0", "-5", "1", "3.0", "Actual Rows of Sort is -5.0"),
            ("2.0", "5", "1e300", "3.0", "Actual Loops of Sort is 1e300"),
            ("2.0", "5", "-1", "3.0", "Actual Loops of Sort is -1.0"),
            ("2.0", "5", "1", "-3.0", "Execution Time is -3.0"),
            ("2.0", "5", "1", "1e300", "Execution Time is 1e300"),
            // Each figure is possible, but not their product.
            ("0.0", "1e12", "1e12", "3.0", "the calls of Sort is 1."),
            ("1e12", "5", "1e12", "3.0", "the time of Sort in all loops is 1e24"),
            ("2.0", "5", "1", "1.0", "the plan's root took 2 ms, but its Execution Time is 1 ms"),
            ("0.5", "5", "1", "3.0", "Sort took 0.5 ms, but its inputs took 1 ms"),
        ] {
            let error = parse_executed(&sort(total_ms, rows, loops, execution_ms), false).unwrap_err();
            assert!(error.what.contains(why), "{why}: {}", error.what);
            assert!(error.hint.contains("clock"), "{}", error.hint);
        }
    }

    #[test]
    fn estimated_times_need_not_add_up() {
        let longer_inputs = sort("0.5", "5", "1", "0.4");
        assert!(parse_executed(&longer_inputs, true).is_ok());
        assert!(parse_executed(&longer_inputs, false).is_err());
        assert!(parse_executed(&sort("-0.5", "5", "1", "3.0"), true).is_err());
    }
}
