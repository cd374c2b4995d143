//! The connection to the server that the arguments name, or to a temporary server.

use super::note;
use crate::error::{Error, SqlState};
use crate::server::connection::{Connection, Password, Target, require_libpq};
use crate::server::ephemeral::Ephemeral;
use clap::{Args, ValueHint};
use std::sync::atomic::AtomicBool;

/// Connection options with psql's names and meanings.
#[derive(Debug, Args)]
pub struct ConnectionArguments {
    /// Database server's host name or socket directory
    #[arg(short = 'h', long, value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub host: Option<String>,
    /// Database server's port
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<String>,
    /// Database user
    #[arg(short = 'U', long, value_name = "NAME")]
    pub username: Option<String>,
    /// Database name, connection string or URI
    #[arg(short, long, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Never ask for a password
    #[arg(short = 'w', long, conflicts_with = "password")]
    pub no_password: bool,
    /// Ask for a password before connecting
    #[arg(short = 'W', long)]
    pub password: bool,
    /// Database name, connection string or URI
    #[arg(value_name = "DBNAME|CONNINFO|URI", conflicts_with = "dbname")]
    pub database: Option<String>,
}

/// Connects to the server that the arguments name, or else to libpq's default.
pub fn open(arguments: &ConnectionArguments, stop: &AtomicBool) -> Result<Connection, Error> {
    Connection::open(&target(arguments), prompt_password, stop)
}

/// A connection and its temporary server, if there is one. They are dropped in this order: the connection closes before the
/// server stops.
pub type OpenServer = (Connection, Option<Ephemeral>);

/// Connects like [`open`]. Starts a temporary server if `ephemeral` is set, or if the user named no server and none
/// answers.
pub fn open_or_start(arguments: &ConnectionArguments, ephemeral: bool, stop: &AtomicBool) -> Result<OpenServer, Error> {
    let target = target(arguments);
    if !ephemeral {
        match Connection::open(&target, prompt_password, stop) {
            Ok(connection) => return Ok((connection, None)),
            Err(error) if !error.state.is(SqlState::NO_SERVER) || is_named(&target) => return Err(error),
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
    let connection = Connection::open(&ephemeral.target(), prompt_password, stop)?;
    Ok((connection, Some(ephemeral)))
}

/// Returns whether an option or a variable names the server, the user or the database. A password alone does not count.
fn is_named(target: &Target) -> bool {
    let variables = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"];
    [&target.host, &target.port, &target.user, &target.database].iter().any(|given| given.is_some())
        || variables.iter().any(|name| std::env::var_os(name).is_some())
}

/// Returns the server, database and user that the arguments name. The options have psql's meanings.
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

/// Asks for the password on the terminal and does not show it.
fn prompt_password() -> Result<String, Error> {
    const WHAT: &str = "the server requires a password, but there is no terminal to ask for it";
    const HINT: &str = "set PGPASSWORD or PGPASSFILE, or add the password to ~/.pgpass";
    rpassword::prompt_password("Password: ").map_err(|_| Error::new(WHAT, HINT))
}
