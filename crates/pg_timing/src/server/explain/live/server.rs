//! The server's version and the settings that affect timing.

use super::session::quoted;
use super::setting::{self, STATEMENT_TIMEOUT, Setting};
use super::statement_timeout;
use crate::error::Error;
use crate::server::connection::{Connection, Output};
use crate::server::own_sql;
use crate::server::settings::TIMING_SETTINGS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct LiveServer {
    /// like `18.6`
    pub version: String,
    /// database, host and port
    pub name: String,
    pub settings: BTreeMap<String, String>,
    /// names of the settings that the user gave with the statement
    pub given_settings: BTreeSet<String>,
    pub notes: Vec<String>,
}

impl LiveServer {
    /// Reads the server's version and settings, with those that the user gave. The queries may take `own_limit`.
    pub fn read(
        connection: &mut Connection,
        given: &[Setting],
        own_limit: Duration,
        stop: &AtomicBool,
    ) -> Result<LiveServer, Error> {
        let version = connection.supported_version()?;
        let given_settings: BTreeSet<String> = given.iter().map(|setting| setting.name.clone()).collect();
        let settings = read_settings(connection, given, own_limit, stop)?;
        let mut notes = Vec::new();
        if !connection.is_local() {
            notes.push(
                "the server is on another host: the cost of one clock read is not measured, but the overhead of this statement is"
                    .into(),
            );
        }
        Ok(LiveServer { version, name: connection.name(), settings, given_settings, notes })
    }
}

/// Returns the settings that the figures depend on and the given ones, with the values that they have in the runs.
fn read_settings(
    connection: &mut Connection,
    given: &[Setting],
    own_limit: Duration,
    stop: &AtomicBool,
) -> Result<BTreeMap<String, String>, Error> {
    let timeout = statement_timeout::begin(connection, "READ ONLY", own_limit, given, stop)?;
    setting::apply(given, connection, stop)?;
    let mut given_values = BTreeMap::new();
    for Setting { name, .. } in given {
        let value = match name.as_str() {
            STATEMENT_TIMEOUT => timeout.clone(),
            _ => connection.run(&show(name), Output::Keep, stop)?.value().unwrap_or_default().into(),
        };
        given_values.insert(name.clone(), value);
    }
    // The user may have set it.
    connection.run(own_sql::EMPTY_SEARCH_PATH, Output::Discard, stop)?;
    let names = [TIMING_SETTINGS.as_slice(), &["jit", "max_parallel_workers_per_gather"]].concat();
    let settings = connection.run(&own_sql::settings(&names), Output::Keep, stop)?.pairs().into_iter();
    connection.run(own_sql::ROLLBACK, Output::Discard, stop)?;
    Ok(settings.chain(given_values).collect())
}

/// Returns the SQL that shows a setting. Each part of the name is quoted, because it can be a keyword.
fn show(name: &str) -> String {
    let parts: Vec<String> = name.split('.').map(quoted).collect();
    format!("SHOW {}", parts.join("."))
}
