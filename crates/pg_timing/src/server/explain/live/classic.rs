//! The classic test: rows counted, and what EXPLAIN ANALYZE makes of it. It needs no table, so that it
//! runs on any server, a standby too, and writes nothing.

use super::{Statement, Wishes, explain};
use crate::error::Error;
use crate::report::{ClassicReport, ReadCost};
use crate::server::connection::Connection;
use std::sync::atomic::AtomicBool;

/// A row a call, through two nodes, and nothing kept: the set is in the select list.
const COUNT: &str = "SELECT count(*) FROM (SELECT generate_series(1, 100000)) AS rows";
/// As many rows, read anew 400 times.
const NESTED: &str = "SELECT count(*) FROM generate_series(1, 400) a, generate_series(1, 250) b";

/// Runs both; `read` is what a read of the server's clock was found to cost.
pub fn classic(
    connection: &mut Connection,
    read: ReadCost,
    wishes: Wishes,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<ClassicReport, Error> {
    let mut half = |sql: &str, before: f64| {
        let statement = Statement::new(sql)?;
        explain(connection, &statement, wishes, stop, &mut |done| progress(before + done / 2.0))
    };
    Ok(ClassicReport { count: half(COUNT, 0.0)?, nested: half(NESTED, 0.5)?, read })
}
