//! How much of EXPLAIN ANALYZE is the clock, node by node.

mod correct;
pub(crate) mod figures;
mod plan;
mod runs;
mod server;
mod statement;

pub use runs::Wishes;
pub use statement::{NotOne, Statement};

use correct::Overhead;
use plan::{Explained, Flat, flat};
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
    let server = Server::of(connection, stop)?;
    let runs = runs(connection, statement, wishes, stop, progress)?;
    Ok(report(&server, statement, &runs))
}

fn report(server: &Server, statement: &Statement, runs: &Runs) -> ExplainReport {
    let overhead = Overhead::of(runs);
    let share = |ms: f64| if overhead.reported > 0.0 { ms / overhead.reported } else { 0.0 };
    ExplainReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        server_version: server.version.clone(),
        server: server.name.clone(),
        settings: server.settings.clone(),
        statement: statement.text().into(),
        runs: runs.plain_ms.len(),
        plain_ms: overhead.plain,
        rows_only_ms: overhead.rows_only,
        without_buffers_ms: overhead.without_buffers,
        reported_ms: overhead.reported,
        corrected_ms: overhead.corrected,
        clock_share: share(overhead.reported - overhead.rows_only),
        overhead_share: share(overhead.reported - overhead.plain),
        round_trip_ms: runs.round_trip_ms,
        notes: notes(server, runs),
        nodes: correct::nodes(runs, &overhead),
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
