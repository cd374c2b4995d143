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
use script::{explain as explain_sql, explain_analyze};
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
    let mut session = session::RunSession::new(connection, options)?;
    session.use_settings(&script.settings)?;
    let mut server = server::LiveServer::read(&mut session)?;
    server.find_timings(&mut session)?;
    let subject = subject::Subject::prepare(&mut session, script, subject::NAMES)?;
    let half_width = |runs: &runs::Runs| report::overhead(runs).corrected.relative_half_width();
    let runs = runs::runs(&mut session, &subject, &server.timings, progress, half_width)?;
    let mut one_more = |sql: String| {
        // The plan that is printed needs one more run, also after Ctrl-C. It has the same time limit. A later Ctrl-C cancels it.
        if session.connection.is_stopped() {
            session.connection.ignores_stop = true;
        }
        session.explain(&sql, &[])
    };
    let document = match options.document {
        Some(PlanFormat::Text) => {
            Some(PlanSource::Text(one_more(explain_sql("ANALYZE, TIMING ON", &subject.explained))?))
        }
        Some(PlanFormat::Json) => Some(PlanSource::Json(one_more(explain_analyze("TIMING ON", &subject.explained))?)),
        None => None,
    };
    Ok(ExplainReport { document, ..report::report(&server, script, &subject, &runs) })
}
