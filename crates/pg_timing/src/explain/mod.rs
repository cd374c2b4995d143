//! How much of EXPLAIN ANALYZE is the clock, node by node.

mod correct;
mod figures;
mod plan;
mod runs;
mod server;
mod statement;

pub use correct::Overhead;
pub use plan::{Explained, Flat, Node, flat};
pub use runs::{Runs, Wishes, runs};
pub use server::Server;
pub use statement::{NotOne, Statement};

use crate::postgres::{Connection, Error, Limits};
use crate::report::ExplainReport;

/// Runs the statement on the server and says what it takes.
pub fn explain(
    connection: &mut Connection,
    statement: &Statement,
    wishes: Wishes,
    limits: Limits,
    progress: &mut dyn FnMut(f64),
) -> Result<ExplainReport, Error> {
    let server = Server::of(connection, limits)?;
    let runs = runs(connection, statement, wishes, limits, progress)?;
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
        buffers_ms: overhead.buffers,
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
    if runs.with_output && runs.plain_ms.len() > 1 {
        notes.push("the plain runs sent their rows, which EXPLAIN ANALYZE does not: the query alone takes less".into());
    }
    if runs.reported.iter().any(|run| run.jit.is_some()) {
        notes.push("JIT compiled in every run, and its time is in all figures".into());
    }
    notes
}
