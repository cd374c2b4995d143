//! Runs a statement in all modes and reports how much of its EXPLAIN ANALYZE is overhead.

mod auto_explain;
mod bare_call;
mod classic;
mod explain_json;
mod notes;
mod options;
mod overhead;
mod own_statements;
mod plan_mode;
mod probe;
#[cfg(test)]
mod proptests;
mod rejection;
mod report;
mod run_results;
mod runs;
mod scan;
mod script;
mod server;
mod session;
mod setting;
mod statement;
mod statement_timeout;
mod stopping_rule;
mod subject;
mod times;
mod timing;

pub use classic::classic;
pub use options::{NOT_ROLLED_BACK, RunOptions};
pub use scan::{Kind as TokenKind, Token, Tokens};
pub use script::Script;

use crate::error::Error;
use crate::report::ExplainReport;
use crate::server::connection::Connection;
use std::sync::atomic::AtomicBool;

/// Runs the script's statement on the server and reports its overhead. `progress` receives the completed fraction, 0 to 1.
pub fn explain(
    connection: &mut Connection,
    script: &Script,
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<ExplainReport, Error> {
    let mut server = server::LiveServer::read(connection, script.settings(), options.limit, stop)?;
    let options =
        RunOptions { switch_off_auto_explain: auto_explain::must_be_off(connection, &mut server, stop)?, ..options };
    let timings = timing::timings(connection, &mut server, script.settings(), options.limit, stop)?;
    let runs = runs::runs(connection, script, &timings, options, stop, progress)?;
    Ok(report::report(&server, script, &runs))
}
