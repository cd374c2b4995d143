//! The ways to time plan nodes that a server offers.

use super::server::Server;
use crate::postgres::{Connection, Error, Output};
use std::sync::atomic::AtomicBool;

/// A setting that chooses how plan nodes are timed, for one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub setting: &'static str,
    pub value: &'static str,
}

/// PostgreSQL 19's own, and pg_fast_timing's.
const CLOCK_SOURCE: (&str, [&str; 2]) = ("timing_clock_source", ["system", "tsc"]);
const METHOD: (&str, [&str; 4]) = ("pg_fast_timing.method", ["off", "tsc", "sampling", "auto"]);

impl Timing {
    /// The one whose times are not distorted by calls.
    pub fn is_sampling(&self) -> bool {
        (self.setting, self.value) == (METHOD.0, "sampling")
    }

    /// Within a transaction.
    pub fn chosen(&self) -> String {
        format!("SET LOCAL {} = '{}'", self.setting, self.value)
    }
}

/// All that may be chosen here; what is there and may not goes to the server's notes.
pub fn timings(connection: &mut Connection, server: &mut Server, stop: &AtomicBool) -> Result<Vec<Timing>, Error> {
    let mut timings = Vec::new();
    let offered = [(CLOCK_SOURCE.0, &CLOCK_SOURCE.1[..]), (METHOD.0, &METHOD.1[..])];
    for (setting, values) in offered.into_iter().filter(|(setting, _)| server.settings.contains_key(*setting)) {
        for value in values {
            let timing = Timing { setting, value };
            connection.run("BEGIN READ ONLY", Output::Discard, stop)?;
            let chosen = connection.run(&timing.chosen(), Output::Discard, stop);
            connection.run("ROLLBACK", Output::Discard, stop)?;
            match chosen {
                Ok(_) => timings.push(timing),
                Err(error) => {
                    server.notes.push(format!("{setting} = {value} was not tried: {error}"));
                    break;
                }
            }
        }
    }
    Ok(timings)
}
