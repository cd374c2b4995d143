//! How much of EXPLAIN ANALYZE is the clock, node by node.

mod captured;
mod classic;
mod correct;
pub(crate) mod figures;
mod flat;
mod live;
mod plan;
mod runs;
mod sampled;
mod server;
mod statement;
mod timing;

pub use captured::{Known, Read, captured};
pub use classic::classic;
pub use runs::Wishes;
pub use statement::{NotOne, Statement};

use correct::Overhead;
use flat::{Flat, flat};
pub use plan::Explained;
use runs::{Runs, runs};
use server::Server;

use crate::postgres::{Connection, Error};
use crate::report::ExplainReport;
use std::sync::atomic::AtomicBool;

/// Runs the statement on the server and says what it takes.
pub fn explain(
    connection: &mut Connection,
    statement: &Statement,
    wishes: Wishes,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<ExplainReport, Error> {
    let mut server = Server::of(connection, stop)?;
    let timings = timing::timings(connection, &mut server, stop)?;
    let runs = runs(connection, statement, &timings, wishes, stop, progress)?;
    Ok(report(&server, statement, &runs))
}

fn report(server: &Server, statement: &Statement, runs: &Runs) -> ExplainReport {
    let overhead = Overhead::of(runs);
    let share = |ms: f64| if overhead.reported > 0.0 { ms / overhead.reported } else { 0.0 };
    ExplainReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        settings: server.settings.clone(),
        statement: Some(statement.text().into()),
        runs: Some(live::report(server, runs, &overhead)),
        capture: None,
        reported_ms: overhead.reported,
        corrected_ms: overhead.corrected,
        clock_share: share(overhead.reported - overhead.rows_only),
        notes: notes(server, runs),
        nodes: overhead.nodes(runs),
    }
}

fn notes(server: &Server, runs: &Runs) -> Vec<String> {
    let mut notes = server.notes.clone();
    if runs.rows_sent > 0 {
        notes.push(format!(
            "the plain runs sent us {} rows, which EXPLAIN ANALYZE does not: the query alone takes less",
            runs.rows_sent
        ));
    }
    if runs.reported.iter().any(|run| run.jit.is_some()) {
        notes.push("JIT compiled in every run, and its time is in all figures".into());
    }
    notes
}
