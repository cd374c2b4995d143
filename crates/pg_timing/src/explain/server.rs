//! The server that a statement runs on, and how it is set up.

use crate::postgres::{Connection, Error, Limits, Output};
use std::collections::BTreeMap;

/// What timing, and with it these figures, depends on.
const SETTINGS: [&str; 6] = [
    "timing_clock_source",
    "jit",
    "max_parallel_workers_per_gather",
    "track_io_timing",
    "pg_fast_timing.method",
    "auto_explain.log_analyze",
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
    pub fn of(connection: &mut Connection, limits: Limits) -> Result<Server, Error> {
        let number = connection.server_version();
        let version = format!("{}.{}", number / 10_000, number % 10_000);
        if number < 150_000 {
            return Err(Error::new(
                format!("the server is PostgreSQL {version}"),
                "this knows PostgreSQL 15 to 19, and what is older is past its end of life",
            ));
        }
        let mut settings = BTreeMap::new();
        for name in SETTINGS {
            // NULL where the server has no such setting.
            let asked = connection.run(&format!("SELECT current_setting('{name}', true)"), Output::Keep, limits)?;
            if let Some(value) = asked.value() {
                settings.insert(name.to_string(), value.to_string());
            }
        }
        let mut notes = Vec::new();
        if !connection.is_local() {
            notes.push("the server is on another host: its clock cannot be measured from here, but what it costs this statement can".into());
        }
        if settings.get("auto_explain.log_analyze").is_some_and(|value| value == "on") {
            notes.push(
                "auto_explain.log_analyze times the plain runs as well: what timing adds comes out too small".into(),
            );
        }
        Ok(Server { version, name: connection.name(), settings, notes })
    }
}
