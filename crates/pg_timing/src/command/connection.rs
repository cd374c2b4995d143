//! The server that the arguments name.

use super::arguments::ConnectionArguments;
use crate::postgres::{Connection, Error, Password, Target};

pub fn open(arguments: &ConnectionArguments) -> Result<Connection, Error> {
    Connection::open(&target(arguments), ask)
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
