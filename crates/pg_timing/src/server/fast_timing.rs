//! The figures of pg_fast_timing.

use super::session::Session;
use super::settings::Server;
use crate::error::Error;
use crate::report::FastTiming;
use crate::server::connection::Connection;
use crate::server::own_sql;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Returns the figures of `pg_fast_timing_info()`. `None` if the extension is not installed in this database, or not loaded, or
/// another version with other columns.
pub fn info(connection: &mut Connection, stop: &AtomicBool) -> Result<Option<FastTiming>, Error> {
    let mut session = Session::new(connection, stop);
    let server = Server::of(&mut session)?;
    let Some(function) = server.extension_object("pg_fast_timing_info") else { return Ok(None) };
    let columns = session.query(&own_sql::fast_timing_info(&function))?;
    let columns: BTreeMap<String, String> = columns.pairs().into_iter().collect();
    let text = |name: &str| columns.get(name).cloned().unwrap_or_default();
    let number = |name: &str| columns.get(name)?.parse::<f64>().ok();
    let figures = || {
        Some(FastTiming {
            method: text("method"),
            clock: text("clock"),
            ticker: text("ticker"),
            scope: text("scope"),
            call_cost_ns: number("call_cost_ns"),
            statements: number("statements")?,
            exact_nodes: number("exact_nodes")?,
            estimated_nodes: number("estimated_nodes")?,
            node_calls: number("node_calls")?,
            without_tsc: number("without_tsc")?,
            without_ticks: number("without_ticks")?,
        })
    };
    Ok(figures())
}
