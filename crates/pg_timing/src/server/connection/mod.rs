//! A connection to a PostgreSQL server through libpq. It understands all connection settings that psql understands.

mod cancel;
mod check;
mod deadline;
mod libpq;
mod memory;
mod open;
mod parameters;
mod result;
mod secret;
mod sql;
mod statement;
mod target;
mod wait;

pub use result::{Output, Rows};
pub use sql::Sql;
pub use target::{Password, Target};

use crate::error::Error;
use crate::error::one_line;
use libpq::{Libpq, Opaque, code, libpq, owned, shortened};
use memory::MemoryWatch;
use open::Attempt;
use secret::Secrets;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of a statement, if no other is set. Statements about settings and statistics take milliseconds.
const LIMIT: Duration = Duration::from_secs(10);
/// Longest version, in characters.
const MAX_VERSION: usize = 40;
/// Hints of several errors.
/// The versions that the tests run on. A newer server is accepted, because most of them change nothing that pg_timing reads.
pub const SUPPORTED_SERVERS: &str = "pg_timing supports PostgreSQL 15 to 19";

const PERHAPS_FAULTY: &str = "perhaps this is not a PostgreSQL server, or a proxy is faulty";
const CHECK_PSQL: &str = "check that psql connects with the same options";
/// A thread waits in libpq, and will not return soon.
static THREAD_REMAINS: AtomicBool = AtomicBool::new(false);

/// Opens libpq. Returns an error with the name of its package if that is not possible.
pub fn require_libpq() -> Result<(), Error> {
    libpq().map(|_| ())
}

/// Ends the program at once if a thread remains in libpq. A normal end would run the exit handlers of OpenSSL, which
/// free the memory that the thread uses.
pub fn exit_if_a_thread_remains(exit_status: u8) {
    if THREAD_REMAINS.load(Ordering::Relaxed) {
        // SAFETY: the call does not return. All output is written already.
        unsafe { libc::_exit(exit_status.into()) }
    }
}

/// An open connection.
pub struct Connection {
    pq: &'static Libpq,
    conn: Opaque,
    /// time limit of one statement
    limit: Duration,
    /// the server did not answer, or violated the protocol: nothing more is sent to it
    final_error: Option<Error>,
    memory: MemoryWatch,
    secrets: Secrets,
    /// time of the last answer, for a caller that notices a silent server
    answered: Option<Arc<Mutex<Instant>>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: this object owns the connection, and nothing uses it afterwards.
        unsafe { (self.pq.PQfinish)(self.conn) }
    }
}

/// A failed attempt to connect.
#[derive(Debug)]
pub struct OpenError {
    pub error: Error,
    /// nothing listens at this address
    pub no_server: bool,
}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        OpenError { error, no_server: false }
    }
}

impl From<OpenError> for Error {
    fn from(OpenError { error, .. }: OpenError) -> Error {
        error
    }
}

impl Connection {
    /// Connects like psql. `ask` asks for a password at the terminal.
    pub fn open(
        target: &Target,
        ask: impl Fn() -> Result<String, Error>,
        stop: &AtomicBool,
    ) -> Result<Connection, OpenError> {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        let secrets = &mut Secrets::of(target, variables);
        let pq = libpq()?;
        check::check(pq, target, secrets)?;
        let ask = |secrets: &mut Secrets| ask().inspect(|password| secrets.add_password(password));
        let attempt = |password: Option<&str>| -> Result<(Connection, Attempt), Error> {
            let attempt = open::attempt(pq, target, password, stop)?;
            let memory = MemoryWatch::new();
            let secrets = Secrets::default();
            let (conn, final_error, answered) = (attempt.conn, None, None);
            Ok((Connection { pq, conn, limit: LIMIT, final_error, memory, secrets, answered }, attempt))
        };
        let password = if target.password == Password::Always { Some(ask(secrets)?) } else { None };
        let (mut connection, mut tried) = attempt(password.as_deref())?;
        if !connection.is_open()
            && password.is_none()
            && target.password == Password::IfNeeded
            && connection.needs_password()
        {
            (connection, tried) = attempt(Some(&ask(secrets)?))?;
        }
        connection.add_secrets(secrets);
        match (connection.is_open(), tried.ended) {
            (true, None) => {
                // Otherwise libpq waits without a limit for a server that does not read.
                // SAFETY: the connection is not NULL.
                unsafe { (pq.PQsetnonblocking)(connection.conn, 1) };
                Ok(connection)
            }
            (_, Some(ended)) => Err(ended.error(secrets).into()),
            (false, None) => {
                let error =
                    Error::new(one_line(&connection.message()), connection.hint(tried.reached, target.password));
                Err(OpenError { error, no_server: !tried.reached })
            }
        }
    }

    /// Adds the secrets that libpq found in a service file or a password file. Later errors do not contain any of them.
    fn add_secrets(&mut self, secrets: &mut Secrets) {
        // SAFETY: the connection is not NULL; the list is not used elsewhere, and the text is copied at once.
        let (options, password) =
            unsafe { (check::options(self.pq, (self.pq.PQconninfo)(self.conn)), owned((self.pq.PQpass)(self.conn))) };
        options.iter().for_each(|(keyword, value)| secrets.add_option(keyword, value));
        secrets.add_password(&password.unwrap_or_default());
        self.secrets = secrets.clone();
    }

    /// Returns a hint for a failed connection. The server's message can be in another language.
    fn hint(&self, reached: bool, asks: Password) -> &'static str {
        // SAFETY: the connection is not NULL.
        let used_password = unsafe { (self.pq.PQconnectionUsedPassword)(self.conn) != 0 };
        if self.needs_password() && asks == Password::Never {
            "set PGPASSWORD, or use PGPASSFILE or ~/.pgpass"
        } else if self.needs_password() {
            "set PGPASSWORD, use PGPASSFILE or ~/.pgpass, or run this at a terminal, which asks for the password"
        } else if used_password {
            "the password came from the terminal, PGPASSWORD, PGPASSFILE or ~/.pgpass"
        } else if self.is_local() && !reached {
            "use -h and -p to name another server, as with psql, or run \"pg_timing explain --ephemeral\", which starts a temporary server"
        } else {
            CHECK_PSQL
        }
    }

    fn is_open(&self) -> bool {
        // SAFETY: the connection is not NULL.
        unsafe { (self.pq.PQstatus)(self.conn) == code::CONNECTION_OK }
    }

    /// Lowers the time limit of each following statement.
    pub fn lower_limit(&mut self, limit: Duration) {
        self.limit = self.limit.min(limit);
    }

    /// Sets the time limit of each following statement. A statement without an answer is canceled a little later.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Writes the time of each answer of the server, from now on. The server has just answered.
    pub fn record_answers(&mut self, time: Arc<Mutex<Instant>>) {
        self.answered = Some(time);
        self.record_answer();
    }

    fn record_answer(&self) {
        if let Some(time) = &self.answered {
            *time.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }

    fn needs_password(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.pq.PQconnectionNeedsPassword)(self.conn) != 0 }
    }

    /// Returns libpq's message. Its lines are not joined yet, because a password can contain a line break.
    fn message(&self) -> String {
        // SAFETY: libpq's own text, valid until its next call.
        let message = unsafe { shortened((self.pq.PQerrorMessage)(self.conn)) };
        self.secrets.remove_from_message(&message.unwrap_or_default())
    }

    /// Returns the version number, like 180006.
    pub fn server_version(&self) -> i32 {
        // SAFETY: the connection is not NULL.
        unsafe { (self.pq.PQserverVersion)(self.conn) }
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
        // SAFETY: the connection is not NULL; the texts are copied at once.
        let (host, address) = unsafe { (owned((self.pq.PQhost)(self.conn)), owned((self.pq.PQhostaddr)(self.conn))) };
        let host = host.unwrap_or_default();
        let address = address.unwrap_or_default();
        // A socket is a path, or a name in Linux's abstract namespace.
        host.starts_with(['/', '@']) || address.parse::<std::net::IpAddr>().is_ok_and(is_own_address)
    }

    /// Returns the server's name on the screen: `db at /run/postgresql:5432`.
    pub fn name(&self) -> String {
        // SAFETY: the connection is not NULL; the text is copied at once.
        let db = unsafe { owned((self.pq.PQdb)(self.conn)) };
        format!("{} at {}", db.unwrap_or_default(), open::name(self.pq, self.conn))
    }
}

/// Returns whether the address belongs to this host: a socket can be bound only to such an address.
fn is_own_address(address: std::net::IpAddr) -> bool {
    address.is_loopback() || std::net::UdpSocket::bind((address, 0)).is_ok()
}
