//! auto_explain with `log_analyze` times each statement, also without EXPLAIN. So the baseline would contain the overhead
//! that is to be measured. The runs switch it off, each in its own transaction.

use super::server::LiveServer;
use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Output};
use crate::server::own_sql;
use std::sync::atomic::AtomicBool;

/// Switches it off until the end of the transaction.
pub const SWITCH_OFF: &str = "SET LOCAL auto_explain.log_analyze = off";

/// Returns whether the runs must switch it off. An error means that this user is not permitted to.
pub fn must_be_off(connection: &mut Connection, server: &mut LiveServer, stop: &AtomicBool) -> Result<bool, Error> {
    if !times_statements(server) {
        return Ok(false);
    }
    connection.run(&own_sql::begin("READ ONLY"), Output::Discard, stop)?;
    let switched = connection.run(SWITCH_OFF, Output::Discard, stop);
    connection.run(own_sql::ROLLBACK, Output::Discard, stop)?;
    match switched {
        Ok(_) => {
            server.notes.push(
                "auto_explain.log_analyze was off in these runs, because it also times runs without EXPLAIN".into(),
            );
            Ok(true)
        }
        Err(error) if error.state.is(SqlState::INSUFFICIENT_PRIVILEGE) => Err(Error::new(
            "auto_explain.log_analyze is on and also times runs without EXPLAIN, so the overhead cannot be measured",
            "connect as a superuser, or let a superuser run: GRANT SET ON PARAMETER auto_explain.log_analyze TO \"ROLE\"; pg_timing then does what PGOPTIONS=\"-c auto_explain.log_analyze=off\" does",
        )),
        Err(error) => Err(error),
    }
}

/// Returns whether auto_explain times statements or counts their rows. With these values it logs nothing.
fn times_statements(server: &LiveServer) -> bool {
    let is = |name: &str, value: &str| server.settings.get(name).is_some_and(|current| current == value);
    is("auto_explain.log_analyze", "on")
        && !is("auto_explain.log_min_duration", "-1")
        && !is("auto_explain.sample_rate", "0")
}
