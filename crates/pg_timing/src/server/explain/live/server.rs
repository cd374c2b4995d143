//! The server that a statement runs on, and how it is set up.

use crate::error::Error;
use crate::server::connection::Connection;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// What timing, and with it these figures, depends on.
const SETTINGS: [&str; 9] = [
    "timing_clock_source",
    "jit",
    "max_parallel_workers_per_gather",
    "track_io_timing",
    "pg_fast_timing.method",
    "auto_explain.log_analyze",
    "auto_explain.log_min_duration",
    "auto_explain.log_timing",
    "auto_explain.sample_rate",
];

#[derive(Clone, Debug)]
pub struct Server {
    /// like `18.6`
    pub version: String,
    pub name: String,
    pub settings: BTreeMap<String, String>,
    pub notes: Vec<String>,
}

impl Server {
    pub fn of(connection: &mut Connection, stop: &AtomicBool) -> Result<Server, Error> {
        let version = connection.known_version()?;
        let settings = connection.settings(&SETTINGS, stop)?;
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|now| now == value);
        let mut notes = Vec::new();
        if !connection.is_local() {
            notes.push("the server is on another host: its clock cannot be measured from here, but what it costs this statement can".into());
        }
        let logged = !is("auto_explain.log_min_duration", "-1") && !is("auto_explain.sample_rate", "0");
        if is("auto_explain.log_analyze", "on") && logged {
            let what = if is("auto_explain.log_timing", "off") { "counts" } else { "times" };
            notes.push(format!(
                "auto_explain.log_analyze {what} the plain runs' rows as well: what EXPLAIN ANALYZE adds comes out too small"
            ));
        }
        Ok(Server { version, name: connection.name(), settings, notes })
    }
}
