//! The classic test: count rows, with and without EXPLAIN ANALYZE. It needs no table and writes nothing, so it runs on
//! any server, including a standby.

use super::{RunOptions, Script, explain};
use crate::error::Error;
use crate::report::{ClassicReport, ExplainReport, ReadCost};
use crate::server::connection::Connection;
use crate::server::own_sql;
use std::sync::atomic::AtomicBool;

/// Runs both statements. `read` is the measured cost of one read of the server's clock.
pub fn classic(
    connection: &mut Connection,
    read: ReadCost,
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<ClassicReport, Error> {
    let options = RunOptions { time: options.time / 2, ..options };
    let mut run_half = |sql: &str, done_before: f64| -> Result<ExplainReport, Error> {
        let script = Script::new(&[sql], &[])?;
        explain(connection, &script, options, stop, &mut |done| progress(done_before + done / 2.0))
    };
    // One call per row through two nodes, and then the same number of rows in 400 loops.
    let count = run_half(&own_sql::count_rows(100_000), 0.0)?;
    let nested = run_half(&own_sql::count_rows_in_loops(400, 250), 0.5)?;
    Ok(ClassicReport { count, nested, read })
}
