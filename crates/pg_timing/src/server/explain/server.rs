//! The server of a measurement: its version, the settings that affect timing, and the timing methods that it offers.

use super::runs::{METHODS, RunMode};
use super::script::Setting;
use super::session::{RunSession, Whose};
use crate::error::{Error, SqlState};
use crate::server::own_sql::{self, MARK};
use crate::server::settings::FAST_TIMING_METHOD;
use std::collections::BTreeMap;

/// The settings that the figures depend on.
const SETTINGS: [&str; 9] = [
    "auto_explain.log_analyze",
    "auto_explain.log_min_duration",
    "auto_explain.log_timing",
    "auto_explain.sample_rate",
    FAST_TIMING_METHOD,
    "jit",
    "max_parallel_workers_per_gather",
    "timing_clock_source",
    "track_io_timing",
];

#[derive(Clone, Debug, Default)]
pub struct LiveServer {
    /// like `18.6`
    pub version: String,
    /// database, host and port
    pub name: String,
    pub settings: BTreeMap<String, String>,
    /// methods that this user may select
    pub timings: Vec<RunMode>,
    pub notes: Vec<String>,
}

impl LiveServer {
    /// Reads the server's version and settings, with those that the user gave. Lets the session switch auto_explain off if necessary.
    pub fn read(session: &mut RunSession) -> Result<LiveServer, Error> {
        let mut server = LiveServer {
            version: session.connection.supported_version()?,
            name: session.connection.name(),
            settings: read_settings(session)?,
            timings: Vec::new(),
            notes: Vec::new(),
        };
        let method = server.settings.get(FAST_TIMING_METHOD);
        session.has_fast_timing = method.is_some_and(|method| method != "off");
        if server.times_each_statement() {
            switch_auto_explain_off(session)?;
            let note = "auto_explain.log_analyze was off in these runs, because it also times runs without EXPLAIN";
            server.notes.push(note.into());
        }
        Ok(server)
    }

    /// Returns whether auto_explain times each statement, also without EXPLAIN.
    fn times_each_statement(&self) -> bool {
        let is = |name: &str, value: &str| self.settings.get(name).is_some_and(|current| current == value);
        let logs_nothing = is("auto_explain.log_min_duration", "-1") || is("auto_explain.sample_rate", "0");
        is("auto_explain.log_analyze", "on") && !logs_nothing
    }

    /// Finds the timing methods. Those that are refused become notes.
    pub fn find_timings(&mut self, session: &mut RunSession) -> Result<(), Error> {
        let has_fast_timing = self.settings.contains_key(FAST_TIMING_METHOD);
        for (name, values) in METHODS.iter().filter(|(name, _)| self.settings.contains_key(*name)) {
            for value in *values {
                let mode = RunMode::timed_by(name, value, has_fast_timing);
                let selected = session.in_rolled_back_transaction(Whose::Own, |session| {
                    mode.settings.iter().try_for_each(|sql| session.connection.execute(sql))
                });
                match selected {
                    Err(error) if error.state.ends_session() => return Err(error),
                    Err(error) => {
                        self.notes.push(format!("{name} = {value} was not measured: {error}"));
                        break;
                    }
                    Ok(()) => self.timings.push(mode),
                }
            }
        }
        Ok(())
    }
}

/// Lets the session switch auto_explain off in each run. An error means that this user is not permitted to.
fn switch_auto_explain_off(session: &mut RunSession) -> Result<(), Error> {
    session.must_switch_off_auto_explain = true;
    match session.in_rolled_back_transaction(Whose::Own, |_| Ok(())) {
        Err(error) if error.state.is(SqlState::INSUFFICIENT_PRIVILEGE) => Err(Error::new(
            "auto_explain.log_analyze is on and also times runs without EXPLAIN, so the overhead cannot be measured",
            "connect as a superuser, or let a superuser run: GRANT SET ON PARAMETER auto_explain.log_analyze TO \"ROLE\"; pg_timing then does what PGOPTIONS=\"-c auto_explain.log_analyze=off\" does",
        )),
        switched => switched,
    }
}

/// Returns the settings that the figures depend on and the given ones, with the values that they have in the runs.
fn read_settings(session: &mut RunSession) -> Result<BTreeMap<String, String>, Error> {
    let mut settings: BTreeMap<String, String> =
        session.in_rolled_back_transaction(Whose::Own, |session| session.connection.run(own_sql::ALL_SETTINGS))?.json();
    settings.retain(|name, _| SETTINGS.contains(&name.as_str()));
    session.in_rolled_back_transaction(Whose::Users, |session| {
        session.limit_statement()?;
        session.users.settings.iter().try_for_each(|Setting { name, .. }| {
            settings.insert(name.clone(), session.connection.run(&show(name))?.value().unwrap_or_default().to_string());
            Ok(())
        })
    })?;
    Ok(settings)
}

/// Returns the SQL that shows a setting. Each part of the name is quoted, because it can be a keyword.
fn show(name: &str) -> String {
    let parts: Vec<String> = name.split('.').map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect();
    format!("SHOW {MARK} {}", parts.join("."))
}
