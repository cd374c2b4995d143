//! Runs a statement in all modes and reports how much of its EXPLAIN ANALYZE is overhead.

mod compare_statements;
#[cfg(test)]
mod proptests;
mod report;
mod runs;
mod script;
mod server;
mod session;
mod subject;

pub use compare_statements::compare_statements;
pub use script::Script;

use crate::error::Error;
use crate::report::{ExplainReport, PlanFormat, PlanSource};
use crate::server::connection::Connection;
use crate::statistics::is_enough;
use runs::{Course, ROUND_TRIPS, Runs, TIMED};
use script::{explain as explain_sql, explain_analyze};
use session::RunSession;
use std::time::Duration;

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
    /// the report must contain the plan of a run in this format
    pub document: Option<PlanFormat>,
    /// prints a note before long runs
    pub note: fn(&str),
}

/// Runs the script's statement on the server and reports its overhead. `progress` receives the completed fraction, 0 to 1.
pub fn explain(
    connection: &mut Connection,
    script: &Script,
    options: RunOptions,
    progress: &mut dyn FnMut(f64),
) -> Result<ExplainReport, Error> {
    let mut session = RunSession::new(connection, options)?;
    session.use_settings(&script.settings)?;
    let mut server = server::LiveServer::read(&mut session)?;
    server.find_timings(&mut session)?;
    let subject = subject::Subject::prepare(&mut session, script, "", true)?;
    progress(0.0);
    session.prepare_own()?;
    let modes = runs::modes(&server.timings);
    let mut runs = Runs::default();
    runs::warm_up(&mut session, &subject, &runs, &modes)?;
    runs.round_trip_ms = session.round_trip_ms(ROUND_TRIPS)?;
    runs.bare_calls_ms = runs::bare_calls_ms(&mut session, runs.round_trip_ms, TIMED)?;
    let course = Course::new(options.time);
    while runs.end.is_none() && !is_enough(runs.rounds(), report::relative_error(&runs)) {
        let one_round = |session: &mut RunSession| runs::round(session, &subject, &runs, &modes);
        let (round, end) = course.round(runs.rounds(), &mut session, progress, one_round)?;
        round.into_iter().for_each(|round| runs.add(round));
        runs.end = end;
    }
    let document = options.document.map(|format| {
        // The plan that is printed needs one more run, also after Ctrl-C. It has the same time limit. A later Ctrl-C cancels it.
        if session.connection.is_stopped() {
            session.connection.ignores_stop = true;
        }
        let mut run = |sql: String| session.explain(&sql, &[]);
        match format {
            PlanFormat::Text => run(explain_sql("ANALYZE, TIMING ON", &subject.explained)).map(PlanSource::Text),
            PlanFormat::Json => run(explain_analyze(TIMED, &subject.explained)).map(PlanSource::Json),
        }
    });
    Ok(ExplainReport { document: document.transpose()?, ..report::report(&server, script, &subject, &runs) })
}
