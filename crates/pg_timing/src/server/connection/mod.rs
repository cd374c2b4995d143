//! A connection to a PostgreSQL server through libpq. It understands all connection settings that psql understands, and never
//! waits without a limit.

mod libpq;
mod statement;

pub use statement::Rows;

use crate::error::{Error, SqlState, one_line};
use clap::{Args, ValueHint};
use libc::{c_char, c_int, c_void};
use libpq::{Libpq, Opaque, c_text, code, libpq, owned, shortened};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit of a statement, if no other is set. Statements about settings and statistics take milliseconds.
const LIMIT: Duration = Duration::from_secs(10);
/// Time limit for each host without `connect_timeout`. A server answers within milliseconds, and through a slow network within
/// seconds.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The longest single wait for a socket. After each wait comes a check of Ctrl-C and of the time limit.
const INTERVAL: Duration = Duration::from_millis(50);
/// Longest version, in characters.
const MAX_VERSION: usize = 40;
/// The versions that the tests run on. A newer server is accepted, because most of them change nothing that pg_timing reads.
pub const SUPPORTED_SERVERS: &str = "pg_timing supports PostgreSQL 15 to 19";
// Hints of several errors.
const PERHAPS_FAULTY: &str = "perhaps this is not a PostgreSQL server, or a proxy is faulty";
const CHECK_PSQL: &str = "check that psql connects with the same options";

/// Opens libpq. Returns an error with the name of its package if that is not possible.
pub fn require_libpq() -> Result<(), Error> {
    libpq().map(|_| ())
}

/// Connection options with psql's names and meanings. libpq finds missing ones in PG* variables, a service file and .pgpass.
#[derive(Args, Clone, Debug, Default)]
pub struct Target {
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

impl Target {
    fn database(&self) -> Option<&str> {
        self.dbname.as_deref().or(self.database.as_deref())
    }

    /// Returns whether an option or a variable names the server, the user or the database. A password alone does not count.
    pub fn is_named(&self) -> bool {
        let variables = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"];
        let options = [&self.host, &self.port, &self.username, &self.dbname, &self.database];
        options.iter().any(|option| option.is_some()) || variables.iter().any(|name| std::env::var_os(name).is_some())
    }

    /// Returns keywords and values for libpq. It expands a connection string in `dbname`, and later keywords override it, as in
    /// psql.
    fn parameters(&self, password: Option<&str>) -> Result<Parameters, Error> {
        let given = [
            ("dbname", self.database()),
            ("host", self.host.as_deref()),
            ("port", self.port.as_deref()),
            ("user", self.username.as_deref()),
            ("password", password),
            // Statements and results are UTF-8, independent of the database's encoding.
            ("client_encoding", Some("UTF8")),
            ("application_name", Some("pg_timing")),
        ];
        let given = given.into_iter().filter_map(|(keyword, value)| Some((keyword, value?)));
        given.map(|(keyword, value)| Ok((c_text(keyword)?, c_text(value)?))).collect()
    }
}

/// Keywords and values for libpq.
type Parameters = Vec<(CString, CString)>;

/// An open connection.
pub struct Connection {
    pq: &'static Libpq,
    conn: Opaque,
    /// Ctrl-C, which cancels a running statement
    stop: Arc<AtomicBool>,
    /// cancels no statement, also after Ctrl-C
    pub ignores_stop: bool,
    /// time limit of each following statement; without an answer, it is canceled a little later
    pub limit: Duration,
    /// errors do not repeat the statements, which contain values: they can be secret
    pub hides_statements: bool,
    /// the server did not answer, or violated the protocol: nothing more is sent to it
    final_error: Option<Error>,
    /// a server accepted the connection, even if it refused the session later
    reached: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: this object owns the connection, and nothing uses it afterwards.
        unsafe { (self.pq.PQfinish)(self.conn) }
    }
}

impl Connection {
    /// Connects like psql. `ask` asks for a password at the terminal. The error has the code [`SqlState::NO_SERVER`] if nothing
    /// listens at the address.
    pub fn open(
        target: &Target,
        ask: impl Fn() -> Result<String, Error>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Connection, Error> {
        let mut password = target.password.then(&ask).transpose()?;
        loop {
            let connection = Connection::attempt(target, password.as_deref(), stop)?;
            if connection.is_open() {
                // Otherwise libpq waits without a limit for a server that does not read.
                // SAFETY: the connection is not NULL.
                unsafe { (connection.pq.PQsetnonblocking)(connection.conn, 1) };
                return Ok(connection);
            }
            if password.is_some() || target.no_password || !connection.needs_password() {
                return Err(connection.refused());
            }
            password = Some(ask()?);
        }
    }

    /// Returns an open or a failed connection. As in libpq, each host of a list has its own time.
    fn attempt(target: &Target, password: Option<&str>, stop: &Arc<AtomicBool>) -> Result<Connection, Error> {
        let pq = libpq()?;
        let mut parameters = target.parameters(password)?;
        loop {
            let end = [std::ptr::null()];
            let keywords: Vec<_> = parameters.iter().map(|(keyword, _)| keyword.as_ptr()).chain(end).collect();
            let values: Vec<_> = parameters.iter().map(|(_, value)| value.as_ptr()).chain(end).collect();
            // SAFETY: both lists end with NULL, and what they point to outlives the call.
            let conn = unsafe { (pq.PQconnectStartParams)(keywords.as_ptr(), values.as_ptr(), 1) };
            let mut connection = Connection {
                pq,
                conn,
                stop: stop.clone(),
                ignores_stop: false,
                limit: LIMIT,
                hides_statements: false,
                final_error: None,
                reached: false,
            };
            // libpq's message can quote the password.
            let is_string = target.database().is_some_and(|text| text.contains('=') || text.contains("://"));
            if connection.status() == code::CONNECTION_BAD && is_string {
                let hint = "check its options, and write special characters in a URI as %XX";
                return Err(Error::new("invalid connection string", hint));
            }
            // Notices are not printed: a server can send any text at any time. Errors come with the result.
            // SAFETY: the function exists as long as the program.
            unsafe { (pq.PQsetNoticeProcessor)(conn, no_notices, std::ptr::null_mut()) };
            let Err((error, tried)) = connection.wait_until_open() else { return Ok(connection) };
            let next = connection.other_hosts(tried)?;
            if next.is_empty() || connection.is_stopped() {
                return Err(error);
            }
            parameters.extend(next);
        }
    }

    /// Returns the parameters that leave out the first hosts of the lists. They are empty if there is no other host.
    fn other_hosts(&self, tried: usize) -> Result<Parameters, Error> {
        let mut other = Parameters::new();
        for keyword in ["host", "hostaddr", "port"] {
            if let Some(list) = self.option(keyword).filter(|list| list.matches(',').count() >= tried) {
                let rest: Vec<&str> = list.split(',').skip(tried).collect();
                other.push((c_text(keyword)?, c_text(&rest.join(","))?));
            }
        }
        Ok(other)
    }

    /// Waits until the session is open or failed. Returns why the attempt ended early, and how many hosts of a list were tried.
    fn wait_until_open(&mut self) -> Result<(), (Error, usize)> {
        let given = self.option("connect_timeout").and_then(|seconds| seconds.trim().parse().ok());
        let limit = given.filter(|seconds| *seconds > 0).map_or(CONNECT_LIMIT, Duration::from_secs);
        let (mut host, mut tried, mut start) = (self.host(), 1, Instant::now());
        let mut events = libc::POLLOUT;
        while self.status() != code::CONNECTION_BAD {
            if self.host() != host {
                (host, start) = (self.host(), Instant::now());
                tried += 1;
            }
            if self.is_stopped() {
                return Err((Error::new("stopped", "the connection was not open yet"), tried));
            }
            if start.elapsed() > limit {
                let what = if self.reached { "the session did not begin" } else { "no connection" };
                let what = format!("{what} within {} s: {host}", limit.as_secs());
                let hint = format!("{CHECK_PSQL}; connect_timeout=SECONDS sets another limit");
                return Err((Error::new(what, hint), tried));
            }
            if self.wait_for(events) {
                events = match self.number(self.pq.PQconnectPoll) {
                    code::POLLING_READING => libc::POLLIN,
                    code::POLLING_WRITING => libc::POLLOUT,
                    _ => return Ok(()),
                };
            }
            self.reached |= self.status() >= code::CONNECTION_MADE;
        }
        Ok(())
    }

    /// Waits a moment for the socket. Returns whether it is ready.
    fn wait_for(&self, events: libc::c_short) -> bool {
        let mut socket = libc::pollfd { fd: self.number(self.pq.PQsocket), events, revents: 0 };
        // SAFETY: the list has one descriptor. An interrupted wait only ends earlier.
        unsafe { libc::poll(&mut socket, 1, INTERVAL.as_millis() as c_int) };
        socket.revents != 0
    }

    /// Returns why the connection failed. The server's message can be in another language.
    fn refused(&self) -> Error {
        let hint = if self.needs_password() {
            "set PGPASSWORD, use PGPASSFILE or ~/.pgpass, or run this at a terminal without -w, which asks for the password"
        } else if self.number(self.pq.PQconnectionUsedPassword) != 0 {
            "the password came from the terminal, PGPASSWORD, PGPASSFILE or ~/.pgpass"
        } else if self.is_local() && !self.reached {
            "check that the server runs, or name another one (-h and -p, as with psql); \"pg_timing explain --ephemeral\" starts a temporary server"
        } else {
            CHECK_PSQL
        };
        let state = if self.reached { "" } else { SqlState::NO_SERVER };
        Error { state: SqlState(state.into()), ..Error::new(one_line(&self.message()), hint) }
    }

    /// Returns the flag of Ctrl-C.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Returns whether the user has stopped the statements.
    pub fn is_stopped(&self) -> bool {
        !self.ignores_stop && self.stop.load(Ordering::Relaxed)
    }

    /// Returns a number that a function of libpq returns for this connection.
    fn number(&self, function: unsafe extern "C" fn(Opaque) -> c_int) -> c_int {
        // SAFETY: the connection is open, or libpq accepts NULL here; no function of libpq-fe.h with this type needs more.
        unsafe { function(self.conn) }
    }

    /// Returns a copy of a text that a function of libpq returns for this connection.
    fn text(&self, function: unsafe extern "C" fn(Opaque) -> *const c_char) -> String {
        // SAFETY: as above. The text ends with NUL, and is copied at once.
        unsafe { owned(function(self.conn)) }.unwrap_or_default()
    }

    fn status(&self) -> c_int {
        self.number(self.pq.PQstatus)
    }

    fn is_open(&self) -> bool {
        self.status() == code::CONNECTION_OK
    }

    fn needs_password(&self) -> bool {
        self.number(self.pq.PQconnectionNeedsPassword) != 0
    }

    /// Returns the value of a connection option, wherever it came from.
    fn option(&self, keyword: &str) -> Option<String> {
        // SAFETY: the connection is not NULL. The list ends with an option without a keyword, and is freed once.
        unsafe {
            let list = (self.pq.PQconninfo)(self.conn);
            let (mut option, mut found) = (list, None);
            while !option.is_null() && !(*option).keyword.is_null() && found.is_none() {
                found = owned((*option).value).filter(|_| owned((*option).keyword).as_deref() == Some(keyword));
                option = option.add(1);
            }
            (self.pq.PQconninfoFree)(list);
            found
        }
    }

    /// Returns the host or socket directory, and the port.
    fn host(&self) -> String {
        format!("{}:{}", self.text(self.pq.PQhost), self.text(self.pq.PQport))
    }

    /// Returns libpq's message.
    fn message(&self) -> String {
        // SAFETY: libpq's own text, valid until its next call.
        unsafe { shortened((self.pq.PQerrorMessage)(self.conn)) }.unwrap_or_default()
    }

    /// Returns the version number, like 180006.
    pub fn server_version(&self) -> i32 {
        self.number(self.pq.PQserverVersion)
    }

    /// Returns the version, like `18.6` or `19rc1`, or an error if the server is too old.
    pub fn supported_version(&self) -> Result<String, Error> {
        // SAFETY: the connection is not NULL, the name ends with NUL, and the result is copied at once.
        let text = unsafe { shortened((self.pq.PQparameterStatus)(self.conn, c"server_version".as_ptr())) };
        let version = text.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_string();
        match self.server_version() {
            150_000.. => Ok(version.chars().take(MAX_VERSION).collect()),
            _ if version.is_empty() => Err(Error::new("the server did not send its version", PERHAPS_FAULTY)),
            _ => Err(Error::new(
                format!("PostgreSQL {version} is not supported"),
                format!("{SUPPORTED_SERVERS}; older versions have reached their end of life"),
            )),
        }
    }

    /// Returns whether the address of the server is on this host.
    pub fn is_local(&self) -> bool {
        // A socket is a path, or a name in Linux's abstract namespace.
        self.text(self.pq.PQhost).starts_with(['/', '@'])
            // A socket can be bound only to an address of this host.
            || self.text(self.pq.PQhostaddr).parse::<std::net::IpAddr>().is_ok_and(|address| {
                address.is_loopback() || std::net::UdpSocket::bind((address, 0)).is_ok()
            })
    }

    /// Returns the server's name on the screen: `db at /run/postgresql:5432`.
    pub fn name(&self) -> String {
        format!("{} at {}", self.text(self.pq.PQdb), self.host())
    }
}

unsafe extern "C" fn no_notices(_: *mut c_void, _: *const c_char) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_options_override_the_connection_string() {
        let database = Some("service=x host=y".into());
        let target = Target { host: Some("/tmp".into()), database, ..Target::default() };
        let parameters = target.parameters(Some("secret")).unwrap();
        let keywords: Vec<_> = parameters.iter().map(|(keyword, _)| keyword.to_str().unwrap()).collect();
        assert_eq!(keywords, ["dbname", "host", "password", "client_encoding", "application_name"]);
    }
}
