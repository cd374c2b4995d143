//! Runs a statement in all modes and reports how much of its EXPLAIN ANALYZE is overhead.

mod bare_call;
mod classic;
mod plans;
mod report;
mod runs;
mod server;
mod session;
mod statement;
mod timing;

pub use classic::classic;
pub use runs::{Runs, Wishes};
pub use session::STAYS;
pub use statement::{Statement, Unfit};

use super::attribution::Overhead;
use super::plan::calls::{all_calls, flat};
use crate::error::Error;
use crate::human::duration;
use crate::report::ExplainReport;
use crate::server::connection::Connection;
use crate::statistics::uncertainty;
use runs::runs;
use server::Server;
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
        runs: Some(report::report(server, runs, &overhead)),
        capture: None,
        reported_ms: overhead.reported,
        corrected_ms: overhead.corrected,
        clock_share: share(overhead.clock()),
        notes: notes(server, runs, &overhead),
        nodes: overhead.nodes(runs),
    }
}

/// Whoever compares with psql's \timing sees another figure.
fn rows_not_sent(runs: &Runs) -> Option<String> {
    const MANY: f64 = 1000.0;
    let rows = runs.reported.first().and_then(|run| run.plan.rows)?.each;
    (runs.rows_sent == 0 && rows >= MANY).then(|| {
        format!("its {rows} rows are made and not sent, as by EXPLAIN ANALYZE: psql's \\timing, which has them sent, says more")
    })
}

/// On a quiet machine single runs are some percent apart.
fn restless(runs: &Runs) -> Option<String> {
    const APART: f64 = 1.25;
    let (least, most) = extremes(&runs.plain_ms);
    (most > least * APART + runs.round_trip_off_ms).then(|| {
        let [least, most] = [least, most].map(|ms| duration(ms * 1e6));
        format!("plain runs took from {least} to {most}: something else keeps the machine busy, and so the +- is wide")
    })
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &value| (low.min(value), high.max(value)))
}

/// What a call costs is told by the first run's calls.
fn calls_differ(runs: &Runs) -> Option<String> {
    const ALIKE: f64 = 1.1;
    const FEW: f64 = 10.0;
    let calls: Vec<f64> = runs.reported.iter().map(|run| all_calls(&flat(&run.plan), run).estimate).collect();
    let (least, most) = extremes(&calls);
    (most > least * ALIKE + FEW).then(|| {
        format!("its runs differ, from {least} to {most} calls of its nodes: what a call costs, and a node takes, is known no better than that")
    })
}

/// The headline counts it as overhead, where it belongs to the runs and not to their timing.
fn slower_meanwhile(runs: &Runs, overhead: &Overhead) -> Option<String> {
    let rest = overhead.rest();
    let noise = uncertainty(&runs.plain_ms).hypot(uncertainty(&runs.reported_ms())) + runs.round_trip_off_ms;
    (rest > noise).then(|| {
        format!(
            "EXPLAIN ANALYZE took {} longer than its calls account for, by what one takes in a loop of nothing else: the machine was slower meanwhile, or the query is held up by its timing in other ways; it is taken off all nodes alike",
            duration(rest * 1e6)
        )
    })
}

fn notes(server: &Server, runs: &Runs, overhead: &Overhead) -> Vec<String> {
    let mut notes = server.notes.clone();
    if runs.rows_sent > 0 {
        notes.push(format!(
            "the plain runs sent us {} {}, which EXPLAIN ANALYZE does not: the query alone takes less",
            runs.rows_sent,
            if runs.rows_sent == 1 { "row" } else { "rows" }
        ));
    }
    notes.extend(rows_not_sent(runs));
    notes.extend(calls_differ(runs));
    notes.extend(restless(runs));
    notes.extend(slower_meanwhile(runs, overhead));
    if runs.reported.iter().any(|run| run.jit.is_some()) {
        notes.push("JIT compiled in every run, and its time is in all figures".into());
    }
    notes
}
