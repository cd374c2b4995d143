//! The connection to the server that the arguments name, or to a temporary server.

use super::note;
use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Target, require_libpq};
use crate::server::ephemeral::Ephemeral;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Connects to the server that the arguments name, or else to libpq's default.
pub fn open(target: &Target, stop: &Arc<AtomicBool>) -> Result<Connection, Error> {
    Connection::open(target, prompt_password, stop)
}

/// A connection and its temporary server, if there is one. They are dropped in this order: the connection closes before the
/// server stops.
pub type OpenServer = (Connection, Option<Ephemeral>);

/// Connects like [`open`]. Starts a temporary server if `ephemeral` is set, or if the user named no server and none
/// answers.
pub fn open_or_start(target: &Target, ephemeral: bool, stop: &Arc<AtomicBool>) -> Result<OpenServer, Error> {
    if !ephemeral {
        match open(target, stop) {
            Ok(connection) => return Ok((connection, None)),
            Err(error) if !error.state.is(SqlState::NO_SERVER) || target.is_named() => return Err(error),
            Err(_) => {
                note("no server was given, and no server answers on the default socket: starting a temporary server")
            }
        }
    }
    // Without libpq, no server needs to start.
    require_libpq()?;
    let ephemeral = Ephemeral::start(stop)?;
    let (version, bin) = (&ephemeral.installation.version, ephemeral.installation.bin.display());
    note(&format!("running on a temporary PostgreSQL {version} server from {bin}"));
    let connection = open(&ephemeral.target(), stop)?;
    Ok((connection, Some(ephemeral)))
}

/// Asks for the password on the terminal and does not show it.
fn prompt_password() -> Result<String, Error> {
    const WHAT: &str = "the server requires a password, but there is no terminal to ask for it";
    const HINT: &str = "set PGPASSWORD or PGPASSFILE, or add the password to ~/.pgpass";
    rpassword::prompt_password("Password: ").map_err(|_| Error::new(WHAT, HINT))
}
