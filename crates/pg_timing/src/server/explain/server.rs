//! The server of a measurement: its version, the settings that affect timing, and the timing methods that it offers.

use super::RunOptions;
use super::setting::{self, STATEMENT_TIMEOUT, Setting, quoted};
use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output};
use crate::server::own_sql;
use crate::server::settings::{FAST_TIMING_METHOD, TIMING_SETTINGS};
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
    /// methods that this user may select
    pub timings: Vec<Timing>,
    pub notes: Vec<String>,
}

impl LiveServer {
    /// Reads the server's version and settings, with those that the user gave. Sets whether the runs have to switch off
    /// auto_explain. Each query may take `options.limit`.
    pub fn read(
        connection: &mut Connection,
        given: &[Setting],
        options: &mut RunOptions,
        stop: &AtomicBool,
    ) -> Result<LiveServer, Error> {
        let mut server = LiveServer {
            version: connection.supported_version()?,
            name: connection.name(),
            settings: read_settings(connection, given, options.limit, stop)?,
            given_settings: given.iter().map(|setting| setting.name.clone()).collect(),
            timings: Vec::new(),
            notes: Vec::new(),
        };
        if !connection.is_local() {
            let note = "the server is on another host: the cost of one clock read is not measured, but the overhead of this \
                        statement is";
            server.notes.push(note.into());
        }
        options.switch_off_auto_explain = server.must_switch_off_auto_explain(connection, stop)?;
        server.find_timings(connection, given, options.limit, stop)?;
        Ok(server)
    }

    /// Returns whether the runs must switch auto_explain off. An error means that this user is not permitted to.
    fn must_switch_off_auto_explain(&mut self, connection: &mut Connection, stop: &AtomicBool) -> Result<bool, Error> {
        let is = |name: &str, value: &str| self.settings.get(name).is_some_and(|current| current == value);
        let logs_nothing = is("auto_explain.log_min_duration", "-1") || is("auto_explain.sample_rate", "0");
        if !is("auto_explain.log_analyze", "on") || logs_nothing {
            return Ok(false);
        }
        connection.run(&own_sql::begin("READ ONLY"), Output::Discard, stop)?;
        let switched = connection.run(SWITCH_AUTO_EXPLAIN_OFF, Output::Discard, stop);
        connection.run(own_sql::ROLLBACK, Output::Discard, stop)?;
        match switched {
            Ok(_) => {
                let note = "auto_explain.log_analyze was off in these runs, because it also times runs without EXPLAIN";
                self.notes.push(note.into());
                Ok(true)
            }
            Err(error) if error.state.is(SqlState::INSUFFICIENT_PRIVILEGE) => Err(Error::new(
                "auto_explain.log_analyze is on and also times runs without EXPLAIN, so the overhead cannot be measured",
                "connect as a superuser, or let a superuser run: GRANT SET ON PARAMETER auto_explain.log_analyze TO \"ROLE\"; pg_timing then does what PGOPTIONS=\"-c auto_explain.log_analyze=off\" does",
            )),
            Err(error) => Err(error),
        }
    }

    /// Finds the timing methods. Those that are refused become notes.
    fn find_timings(
        &mut self,
        connection: &mut Connection,
        given: &[Setting],
        own_limit: Duration,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let has_fast_timing = self.settings.contains_key(FAST_TIMING_METHOD);
        for (name, values) in METHODS.iter().filter(|(name, _)| self.settings.contains_key(*name)) {
            for value in *values {
                let disables_fast_timing = *name != FAST_TIMING_METHOD && has_fast_timing;
                let timing = Timing { setting: name, value, disables_fast_timing };
                setting::begin(connection, "READ ONLY", own_limit, given, stop)?;
                setting::apply(given, connection, stop)?;
                let mut run = |sql: &str| connection.run(sql, Output::Discard, stop).map(|_| ());
                let selected = timing.set_local().iter().try_for_each(|sql| run(sql));
                run(own_sql::ROLLBACK)?;
                if let Err(error) = selected {
                    self.notes.push(format!("{name} = {value} was not measured: {error}"));
                    break;
                }
                self.timings.push(timing);
            }
        }
        Ok(())
    }
}

/// auto_explain with `log_analyze` times each statement, also without EXPLAIN. So the baseline would contain the overhead
/// that is to be measured. This switches it off until the end of the transaction.
pub const SWITCH_AUTO_EXPLAIN_OFF: &str = "SET LOCAL auto_explain.log_analyze = off";

/// Returns the settings that the figures depend on and the given ones, with the values that they have in the runs.
fn read_settings(
    connection: &mut Connection,
    given: &[Setting],
    own_limit: Duration,
    stop: &AtomicBool,
) -> Result<BTreeMap<String, String>, Error> {
    let timeout = setting::begin(connection, "READ ONLY", own_limit, given, stop)?;
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

/// A setting that selects the timing method for one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub setting: &'static str,
    pub value: &'static str,
    /// pg_fast_timing is loaded and has to be switched off, or it would time the nodes instead
    disables_fast_timing: bool,
}

const CLOCK_SOURCE: &str = "timing_clock_source";
/// PostgreSQL 19's setting, and pg_fast_timing's.
pub const METHODS: [(&str, &[&str]); 2] =
    [(CLOCK_SOURCE, &["system", "tsc"]), (FAST_TIMING_METHOD, &["off", "tsc", "auto"])];

impl Timing {
    /// Whether pg_fast_timing times the nodes.
    pub fn is_fast_timing(&self) -> bool {
        self.setting == FAST_TIMING_METHOD && self.value != "off"
    }

    /// Returns the statements that select the method until the end of the transaction.
    pub fn set_local(&self) -> Vec<String> {
        let mut statements = vec![own_sql::set_local(self.setting, self.value)];
        statements.extend(self.disables_fast_timing.then(|| own_sql::set_local(FAST_TIMING_METHOD, "off")));
        statements
    }
}

impl std::fmt::Display for Timing {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}={}", self.setting, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_clock_is_measured_without_pg_fast_timing() {
        let timing = |disables_fast_timing| Timing { setting: CLOCK_SOURCE, value: "tsc", disables_fast_timing };
        let alone = "SET LOCAL timing_clock_source = tsc";
        assert_eq!(timing(false).set_local(), [alone]);
        assert_eq!(timing(true).set_local(), [alone, "SET LOCAL pg_fast_timing.method = off"]);
        let method = |value| Timing { setting: FAST_TIMING_METHOD, value, disables_fast_timing: false };
        assert!(method("tsc").is_fast_timing() && !method("off").is_fast_timing() && !timing(true).is_fast_timing());
    }
}
