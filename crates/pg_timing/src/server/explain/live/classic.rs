//! The classic test: count rows, with and without EXPLAIN ANALYZE. It needs no table and writes nothing, so it runs on
//! any server, including a standby.

use super::{RunOptions, Script, explain};
use crate::error::Error;
use crate::report::{ClassicReport, ReadCost};
use crate::server::connection::Connection;
use std::sync::atomic::AtomicBool;

/// One call per row through two nodes. The set is in the select list, so its rows are not stored.
const COUNT: &str = "SELECT count(*) FROM (SELECT generate_series(1, 100000)) AS rows";
/// The same number of rows in 400 loops.
const NESTED: &str = "SELECT count(*) FROM generate_series(1, 400) a, generate_series(1, 250) b";

/// Runs both statements. `read` is the measured cost of one read of the server's clock.
pub fn classic(
    connection: &mut Connection,
    read: ReadCost,
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<ClassicReport, Error> {
    let options = RunOptions { time: options.time / 2, ..options };
    let mut run_half = |sql: &str, done_before: f64| {
        let script = Script::new(&[sql], &[])?;
        explain(connection, &script, options, stop, &mut |done| progress(done_before + done / 2.0))
    };
    Ok(ClassicReport { count: run_half(COUNT, 0.0)?, nested: run_half(NESTED, 0.5)?, read })
}
