//! The server that the arguments name, or one of our own.

use super::arguments::ConnectionArguments;
use super::note;
use crate::error::Error;
use crate::server::connection::{Connection, Password, Target};
use crate::server::ephemeral::Ephemeral;
use std::sync::atomic::AtomicBool;

/// To the one that is named, or that answers where libpq looks.
pub fn open(arguments: &ConnectionArguments) -> Result<Connection, Error> {
    Connection::open(&target(arguments), ask)
}

/// A connection, and what has to outlive it.
pub struct Reached {
    pub connection: Connection,
    _ephemeral: Option<Ephemeral>,
}

/// `ephemeral` asks for a server of our own. So does it that none was named and none answers.
pub fn reach(arguments: &ConnectionArguments, ephemeral: bool, stop: &AtomicBool) -> Result<Reached, Error> {
    let target = target(arguments);
    if !ephemeral && (is_named(&target) || Connection::is_answered(&target)?) {
        return Ok(Reached { connection: Connection::open(&target, ask)?, _ephemeral: None });
    }
    if !ephemeral {
        note("no server was named, and none answers on the default socket: starting one for this run");
    }
    let ephemeral = Ephemeral::start(stop)?;
    let installation = ephemeral.installation();
    note(&format!("runs on its own PostgreSQL {}, of {}", installation.version, installation.bin.display()));
    let connection = Connection::open(&ephemeral.target(), ask)?;
    Ok(Reached { connection, _ephemeral: Some(ephemeral) })
}

/// Whether anything says which server is meant, and not only how to log in to it.
fn is_named(target: &Target) -> bool {
    let variables = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"];
    [&target.host, &target.port, &target.user, &target.database].iter().any(|given| given.is_some())
        || variables.iter().any(|name| std::env::var_os(name).is_some())
}

/// As psql takes them: -d and the first argument are the database, the second the user.
fn target(arguments: &ConnectionArguments) -> Target {
    Target {
        host: arguments.host.clone(),
        port: arguments.port.clone(),
        user: arguments.username.clone(),
        database: arguments.dbname.clone().or_else(|| arguments.database.clone()),
        password: match (arguments.no_password, arguments.password) {
            (true, _) => Password::Never,
            (_, true) => Password::Always,
            _ => Password::IfNeeded,
        },
    }
}

/// From the terminal, unseen.
fn ask() -> Result<String, Error> {
    rpassword::prompt_password("Password: ").map_err(|_| {
        Error::new(
            "the server wants a password, and there is no terminal to ask at",
            "libpq takes it from PGPASSWORD, PGPASSFILE or ~/.pgpass",
        )
    })
}
