//! The timing methods that a server offers for plan nodes.

use super::server::LiveServer;
use super::setting::{self, Setting};
use super::statement_timeout;
use crate::error::Error;
use crate::server::connection::{Connection, Output};
use crate::server::own_sql;
use crate::server::settings::FAST_TIMING_METHOD;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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
    [(CLOCK_SOURCE, &["system", "tsc"]), (FAST_TIMING_METHOD, &["off", "tsc", "sampling", "auto"])];

impl Timing {
    /// Whether node times come from sampling, so calls do not distort them.
    pub fn is_sampling(&self) -> bool {
        (self.setting, self.value) == (FAST_TIMING_METHOD, "sampling")
    }

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

/// Returns the methods that this user may select. Methods that are refused become notes of the server. Each query may take
/// `own_limit`.
pub fn timings(
    connection: &mut Connection,
    server: &mut LiveServer,
    given: &[Setting],
    own_limit: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Timing>, Error> {
    let mut timings = Vec::new();
    let mut notes = Vec::new();
    let has = |setting: &str| server.settings.contains_key(setting);
    for (setting, values) in METHODS.iter().filter(|(setting, _)| has(setting)) {
        for value in *values {
            let timing = Timing {
                setting,
                value,
                disables_fast_timing: *setting != FAST_TIMING_METHOD && has(FAST_TIMING_METHOD),
            };
            statement_timeout::begin(connection, "READ ONLY", own_limit, given, stop)?;
            setting::apply(given, connection, stop)?;
            let mut run = |sql: &str| connection.run(sql, Output::Discard, stop).map(|_| ());
            let selected = timing.set_local().iter().try_for_each(|sql| run(sql));
            run(own_sql::ROLLBACK)?;
            match selected {
                Ok(()) => timings.push(timing),
                Err(error) => {
                    notes.push(format!("{setting} = {value} was not measured: {error}"));
                    break;
                }
            }
        }
    }
    server.notes.extend(notes);
    Ok(timings)
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
        assert!(!timing(false).is_sampling());
        let method = |value| Timing { setting: FAST_TIMING_METHOD, value, disables_fast_timing: false };
        assert!(method("sampling").is_sampling() && method("sampling").is_fast_timing());
        assert!(method("tsc").is_fast_timing() && !method("off").is_fast_timing() && !timing(true).is_fast_timing());
    }
}
