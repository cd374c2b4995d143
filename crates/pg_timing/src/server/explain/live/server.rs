//! The server's version and the settings that affect timing.

use crate::error::Error;
use crate::server::connection::Connection;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// The settings that the figures depend on.
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
    /// database, host and port
    pub name: String,
    pub settings: BTreeMap<String, String>,
    pub notes: Vec<String>,
}

impl Server {
    /// Reads the server's version and settings.
    pub fn read(connection: &mut Connection, stop: &AtomicBool) -> Result<Server, Error> {
        let version = connection.supported_version()?;
        let settings = connection.settings(&SETTINGS, stop)?;
        let mut notes = Vec::new();
        if !connection.is_local() {
            notes.push(
                "the server is on another host: the cost of one clock read is not measured, but the overhead of this statement is"
                    .into(),
            );
        }
        Ok(Server { version, name: connection.name(), settings, notes })
    }
}
