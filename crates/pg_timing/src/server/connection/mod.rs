//! A connection to a PostgreSQL server through libpq. It understands all connection settings that psql understands.

mod libpq;
mod parameters;
mod result;
mod target;

pub use result::{Output, Rows};
pub use target::{Password, Target};

use crate::error::Error;
use crate::error::one_line;
use libc::{c_char, c_int, c_void};
use libpq::{Libpq, Opaque, code, libpq, owned};
use parameters::{Parameters, text};
use result::QueryResult;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between checks of the Ctrl-C flag while a statement runs.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between cancel requests. The server ignores a request that arrives before it starts the statement.
const CANCEL_INTERVAL: Duration = Duration::from_millis(500);

/// An open connection.
pub struct Connection {
    pq: &'static Libpq,
    conn: Opaque,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: this object owns the connection, and nothing uses it afterwards.
        unsafe { (self.pq.PQfinish)(self.conn) }
    }
}

unsafe extern "C" fn no_notices(_: *mut c_void, _: *const c_char) {}

impl Connection {
    /// Connects like psql. `ask` asks for a password at the terminal.
    pub fn open(target: &Target, ask: impl Fn() -> Result<String, Error>) -> Result<Connection, Error> {
        let pq = libpq()?;
        let password = if target.password == Password::Always { Some(ask()?) } else { None };
        let mut connection = Connection::attempt(pq, target, password.as_deref())?;
        if !connection.is_open()
            && password.is_none()
            && target.password == Password::IfNeeded
            && connection.needs_password()
        {
            connection = Connection::attempt(pq, target, Some(&ask()?))?;
        }
        if !connection.is_open() {
            return Err(Error::new(one_line(&connection.message()), connection.hint(target)));
        }
        // Notices of a statement are not printed. Errors come with the result.
        // SAFETY: the connection is open, and the function exists as long as the program.
        unsafe { (pq.PQsetNoticeProcessor)(connection.conn, no_notices, std::ptr::null_mut()) };
        Ok(connection)
    }

    /// Tries to connect. The connection can be a failed one.
    fn attempt(pq: &'static Libpq, target: &Target, password: Option<&str>) -> Result<Connection, Error> {
        let parameters = Parameters::of(target, password)?;
        // SAFETY: both lists end with NULL, and what they point to outlives the call.
        let conn = unsafe { (pq.PQconnectdbParams)(parameters.keywords().as_ptr(), parameters.values().as_ptr(), 1) };
        match conn.is_null() {
            true => Err(Error::new("libpq is out of memory", "")),
            false => Ok(Connection { pq, conn }),
        }
    }

    /// Returns a hint for a failed connection. The server's message can be in another language.
    fn hint(&self, target: &Target) -> &'static str {
        // SAFETY: the connection is not NULL.
        let used_password = unsafe { (self.pq.PQconnectionUsedPassword)(self.conn) != 0 };
        if self.needs_password() {
            "set PGPASSWORD, use PGPASSFILE or ~/.pgpass, or run this at a terminal, which asks for the password"
        } else if used_password {
            "the password came from the terminal, PGPASSWORD, PGPASSFILE or ~/.pgpass"
        // A ping of a remote server could take as long as the connection attempt.
        } else if self.is_local() && Connection::is_answered(target) == Ok(false) {
            "use -h and -p to name another server, as with psql, or run \"pg_timing explain --ephemeral\", which starts a temporary server"
        } else {
            "check that psql connects with the same options"
        }
    }

    /// Returns whether a server answers, even if it refuses the connection.
    pub fn is_answered(target: &Target) -> Result<bool, Error> {
        let pq = libpq()?;
        let parameters = Parameters::of(target, None)?;
        // SAFETY: as above.
        let answer = unsafe { (pq.PQpingParams)(parameters.keywords().as_ptr(), parameters.values().as_ptr(), 1) };
        Ok(answer != code::PING_NO_RESPONSE)
    }

    fn is_open(&self) -> bool {
        // SAFETY: the connection is not NULL.
        unsafe { (self.pq.PQstatus)(self.conn) == code::CONNECTION_OK }
    }

    fn needs_password(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.pq.PQconnectionNeedsPassword)(self.conn) != 0 }
    }

    fn message(&self) -> String {
        // SAFETY: libpq's own text, valid until its next call.
        unsafe { owned((self.pq.PQerrorMessage)(self.conn)) }.unwrap_or_default()
    }

    /// Returns the version number, like 180006.
    pub fn server_version(&self) -> i32 {
        // SAFETY: the connection is not NULL.
        unsafe { (self.pq.PQserverVersion)(self.conn) }
    }

    /// Returns the version, like `18.6` or `19rc1`, or an error if the server is too old.
    pub fn supported_version(&self) -> Result<String, Error> {
        // SAFETY: the connection is not NULL, the name ends with NUL, and the result is copied at once.
        let text = unsafe { owned((self.pq.PQparameterStatus)(self.conn, c"server_version".as_ptr())) };
        let version = text.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_string();
        match self.server_version() {
            150_000.. => Ok(version),
            _ => Err(Error::new(
                format!("PostgreSQL {version} is not supported"),
                "pg_timing supports PostgreSQL 15 to 19; older versions have reached their end of life",
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
        // SAFETY: the connection is not NULL; the texts are copied at once.
        let [db, host, port] = unsafe {
            [(self.pq.PQdb)(self.conn), (self.pq.PQhost)(self.conn), (self.pq.PQport)(self.conn)]
                .map(|text| owned(text))
        };
        format!("{} at {}:{}", db.unwrap_or_default(), host.unwrap_or_default(), port.unwrap_or_default())
    }

    /// Runs one statement and waits for its end. If `stop` is set, the statement is canceled.
    pub fn run(&mut self, sql: &str, output: Output, stop: &AtomicBool) -> Result<Rows, Error> {
        let sql_text = text(sql)?;
        // The extended protocol accepts only one statement.
        // SAFETY: there are no parameters, so the lists may be NULL.
        let sent = unsafe {
            (self.pq.PQsendQueryParams)(
                self.conn,
                sql_text.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
                std::ptr::null(),
                std::ptr::null(),
                0,
            )
        };
        if sent == 0 {
            return Err(self.lost());
        }
        if output == Output::Discard {
            // SAFETY: a query has been sent, and no result fetched.
            unsafe { (self.pq.PQsetSingleRowMode)(self.conn) };
        }
        let mut rows = Ok(Rows::default());
        while let Some(result) = self.next_result(stop)? {
            let part = result.read(sql, output);
            match (&mut rows, part) {
                (Ok(rows), Ok(part)) => {
                    rows.count += part.count;
                    rows.rows.extend(part.rows);
                }
                (Ok(_), Err(error)) => rows = Err(error),
                (Err(_), _) => {}
            }
        }
        rows
    }

    /// Returns the values of these settings, as far as the server has them. Settings of a library exist after it is loaded.
    pub fn settings(&mut self, names: &[&str], stop: &AtomicBool) -> Result<BTreeMap<String, String>, Error> {
        let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let sql = format!(
            "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE name IN ({})",
            names.join(", ")
        );
        Ok(self.run(&sql, Output::Keep, stop)?.pairs().into_iter().collect())
    }

    /// Waits for the next result, and checks the flag meanwhile.
    fn next_result(&mut self, stop: &AtomicBool) -> Result<Option<QueryResult>, Error> {
        let mut canceled: Option<Instant> = None;
        // SAFETY: the connection is not NULL in this function.
        while unsafe { (self.pq.PQisBusy)(self.conn) } != 0 {
            if stop.load(Ordering::Relaxed) && canceled.is_none_or(|at| at.elapsed() > CANCEL_INTERVAL) {
                self.cancel();
                canceled = Some(Instant::now());
            }
            let mut socket = libc::pollfd {
                // SAFETY: as above.
                fd: unsafe { (self.pq.PQsocket)(self.conn) },
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: the list has one descriptor. An interrupted wait only ends earlier.
            unsafe { libc::poll(&mut socket, 1, POLL_INTERVAL.as_millis() as c_int) };
            // SAFETY: as above.
            if socket.revents != 0 && unsafe { (self.pq.PQconsumeInput)(self.conn) } == 0 {
                return Err(self.lost());
            }
        }
        // SAFETY: as above.
        let result = unsafe { (self.pq.PQgetResult)(self.conn) };
        Ok((!result.is_null()).then_some(QueryResult { pq: self.pq, result }))
    }

    /// Requests that the server cancels the statement, which then returns an error.
    fn cancel(&self) {
        let mut message = [0 as c_char; 256];
        // SAFETY: the request is freed, and the buffer has the given length.
        unsafe {
            let request = (self.pq.PQgetCancel)(self.conn);
            if !request.is_null() {
                (self.pq.PQcancel)(request, message.as_mut_ptr(), message.len() as c_int);
                (self.pq.PQfreeCancel)(request);
            }
        }
    }

    /// Returns the error of a lost connection.
    fn lost(&self) -> Error {
        Error::new(
            format!("the connection was lost: {}", one_line(&self.message())),
            "the server rolls back the open transaction",
        )
    }
}

/// Returns whether the address belongs to this host: only then a socket can be bound to it.
fn is_own_address(address: std::net::IpAddr) -> bool {
    address.is_loopback() || std::net::UdpSocket::bind((address, 0)).is_ok()
}
