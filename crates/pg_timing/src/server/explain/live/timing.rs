//! The ways to time plan nodes that a server offers.

use super::server::Server;
use crate::error::Error;
use crate::server::connection::{Connection, Output};
use std::sync::atomic::AtomicBool;

/// A setting that chooses how plan nodes are timed, for one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub setting: &'static str,
    pub value: &'static str,
    /// pg_fast_timing is there, and would time instead
    alone: bool,
}

/// PostgreSQL 19's own, and pg_fast_timing's.
const CLOCK_SOURCE: &str = "timing_clock_source";
const METHOD: &str = "pg_fast_timing.method";
const OFFERED: [(&str, &[&str]); 2] =
    [(CLOCK_SOURCE, &["system", "tsc"]), (METHOD, &["off", "tsc", "sampling", "auto"])];

impl Timing {
    /// The one whose times are not distorted by calls.
    pub fn is_sampling(&self) -> bool {
        (self.setting, self.value) == (METHOD, "sampling")
    }

    /// A statement that chooses it, within a transaction.
    pub fn chosen(&self) -> String {
        let set = |setting: &str, value: &str| format!("pg_catalog.set_config('{setting}', '{value}', true)");
        let alone = if self.alone { format!(", {}", set(METHOD, "off")) } else { String::new() };
        format!("SELECT {}{alone}", set(self.setting, self.value))
    }
}

/// All that may be chosen here; what is there and may not goes to the server's notes.
pub fn timings(connection: &mut Connection, server: &mut Server, stop: &AtomicBool) -> Result<Vec<Timing>, Error> {
    let mut timings = Vec::new();
    let alone = |setting| setting != METHOD && server.settings.contains_key(METHOD);
    let mut notes = Vec::new();
    for (setting, values) in OFFERED.iter().filter(|(setting, _)| server.settings.contains_key(*setting)) {
        for value in *values {
            let timing = Timing { setting, value, alone: alone(*setting) };
            connection.run("BEGIN READ ONLY", Output::Discard, stop)?;
            let chosen = connection.run(&timing.chosen(), Output::Discard, stop);
            connection.run("ROLLBACK", Output::Discard, stop)?;
            match chosen {
                Ok(_) => timings.push(timing),
                Err(error) => {
                    notes.push(format!("{setting} = {value} was not tried: {error}"));
                    break;
                }
            }
        }
    }
    server.notes.extend(notes);
    Ok(timings)
}
