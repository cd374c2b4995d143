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

/// How often the flag of Ctrl-C is looked at while a statement runs.
const LOOK: Duration = Duration::from_millis(50);
/// How often the server is asked to cancel: what comes before it has begun with the statement is lost on it.
const AGAIN: Duration = Duration::from_millis(500);

pub struct Connection {
    pq: &'static Libpq,
    conn: Opaque,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used again.
        unsafe { (self.pq.PQfinish)(self.conn) }
    }
}

unsafe extern "C" fn no_notices(_: *mut c_void, _: *const c_char) {}

impl Connection {
    /// Connects as psql would. `ask` gets a password from whoever sits at the terminal.
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
            return Err(Error::new(one_line(&connection.message()), connection.what_helps(target)));
        }
        // What a statement raises is its own business; errors come with the result.
        // SAFETY: the connection is open, and the function lives as long as the program.
        unsafe { (pq.PQsetNoticeProcessor)(connection.conn, no_notices, std::ptr::null_mut()) };
        Ok(connection)
    }

    fn attempt(pq: &'static Libpq, target: &Target, password: Option<&str>) -> Result<Connection, Error> {
        let parameters = Parameters::of(target, password)?;
        // SAFETY: both lists end with NULL, and what they point to outlives the call.
        let conn = unsafe { (pq.PQconnectdbParams)(parameters.keywords().as_ptr(), parameters.values().as_ptr(), 1) };
        match conn.is_null() {
            true => Err(Error::new("libpq is out of memory", "")),
            false => Ok(Connection { pq, conn }),
        }
    }

    /// To connect, where it failed. The server's own words are in its language.
    fn what_helps(&self, target: &Target) -> &'static str {
        // SAFETY: the connection is not NULL.
        let used_password = unsafe { (self.pq.PQconnectionUsedPassword)(self.conn) != 0 };
        if self.needs_password() {
            "libpq takes a password from PGPASSWORD, PGPASSFILE or ~/.pgpass, and asks for it at a terminal"
        } else if used_password {
            "the password came from the terminal, PGPASSWORD, PGPASSFILE or ~/.pgpass"
        // Of one far away it would take as long again.
        } else if self.is_local() && Connection::is_answered(target) == Ok(false) {
            "-h and -p name another server, as for psql; \"pg_timing explain --ephemeral\" starts one of its own"
        } else {
            "-h, -p, -U and -d are psql's: what psql connects to, this does"
        }
    }

    /// Whether there is a server, be it one that does not let us in.
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

    /// Like 180006.
    pub fn server_version(&self) -> i32 {
        // SAFETY: the connection is not NULL.
        unsafe { (self.pq.PQserverVersion)(self.conn) }
    }

    /// Like `18.6` or `19rc1`, of a server that is not too old for us.
    pub fn known_version(&self) -> Result<String, Error> {
        // SAFETY: the connection is not NULL, the name ends with NUL, and the answer is copied at once.
        let said = unsafe { owned((self.pq.PQparameterStatus)(self.conn, c"server_version".as_ptr())) };
        let version = said.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_string();
        match self.server_version() {
            150_000.. => Ok(version),
            _ => Err(Error::new(
                format!("the server is PostgreSQL {version}"),
                "this knows PostgreSQL 15 to 19, and what is older is past its end of life",
            )),
        }
    }

    /// Whether the server runs on this machine, as far as the connection tells.
    pub fn is_local(&self) -> bool {
        // SAFETY: the connection is not NULL; the texts are copied at once.
        let (host, address) = unsafe { (owned((self.pq.PQhost)(self.conn)), owned((self.pq.PQhostaddr)(self.conn))) };
        let host = host.unwrap_or_default();
        let address = address.unwrap_or_default();
        // A socket is a path, or a name in Linux's abstract namespace.
        host.starts_with(['/', '@']) || address.parse::<std::net::IpAddr>().is_ok_and(is_ours)
    }

    /// What names the server on the screen: `db at /run/postgresql:5432`.
    pub fn name(&self) -> String {
        // SAFETY: the connection is not NULL; the texts are copied at once.
        let [db, host, port] = unsafe {
            [(self.pq.PQdb)(self.conn), (self.pq.PQhost)(self.conn), (self.pq.PQport)(self.conn)]
                .map(|text| owned(text))
        };
        format!("{} at {}:{}", db.unwrap_or_default(), host.unwrap_or_default(), port.unwrap_or_default())
    }

    /// Runs one statement, and waits for its end; once `stop` is set, it is cancelled.
    pub fn run(&mut self, sql: &str, output: Output, stop: &AtomicBool) -> Result<Rows, Error> {
        let sql_text = text(sql)?;
        // The extended protocol takes one statement and no more.
        // SAFETY: no parameters, so the lists may be NULL.
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
        let mut found = Ok(Rows::default());
        while let Some(result) = self.next_result(stop)? {
            let part = result.read(sql, output);
            match (&mut found, part) {
                (Ok(rows), Ok(part)) => {
                    rows.count += part.count;
                    rows.rows.extend(part.rows);
                }
                (Ok(_), Err(error)) => found = Err(error),
                (Err(_), _) => {}
            }
        }
        found
    }

    /// Of these settings, those that the server has; a library's are there once it is loaded.
    pub fn settings(&mut self, names: &[&str], stop: &AtomicBool) -> Result<BTreeMap<String, String>, Error> {
        let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let asked = format!(
            "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE name IN ({})",
            names.join(", ")
        );
        Ok(self.run(&asked, Output::Keep, stop)?.pairs().into_iter().collect())
    }

    /// Waits for it, and looks at the flag meanwhile.
    fn next_result(&mut self, stop: &AtomicBool) -> Result<Option<QueryResult>, Error> {
        let mut cancelled: Option<Instant> = None;
        // SAFETY: the connection is not NULL, in all of this.
        while unsafe { (self.pq.PQisBusy)(self.conn) } != 0 {
            if stop.load(Ordering::Relaxed) && cancelled.is_none_or(|at| at.elapsed() > AGAIN) {
                self.cancel();
                cancelled = Some(Instant::now());
            }
            let mut socket = libc::pollfd {
                // SAFETY: as above.
                fd: unsafe { (self.pq.PQsocket)(self.conn) },
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one descriptor, and we say so. An interrupted wait is a short one.
            unsafe { libc::poll(&mut socket, 1, LOOK.as_millis() as c_int) };
            // SAFETY: as above.
            if socket.revents != 0 && unsafe { (self.pq.PQconsumeInput)(self.conn) } == 0 {
                return Err(self.lost());
            }
        }
        // SAFETY: as above.
        let result = unsafe { (self.pq.PQgetResult)(self.conn) };
        Ok((!result.is_null()).then_some(QueryResult { pq: self.pq, result }))
    }

    /// Asks the server to end the statement; its answer is an error then.
    fn cancel(&self) {
        let mut message = [0 as c_char; 256];
        // SAFETY: what libpq gave is given back, and the buffer is as long as we say.
        unsafe {
            let request = (self.pq.PQgetCancel)(self.conn);
            if !request.is_null() {
                (self.pq.PQcancel)(request, message.as_mut_ptr(), message.len() as c_int);
                (self.pq.PQfreeCancel)(request);
            }
        }
    }

    fn lost(&self) -> Error {
        Error::new(
            format!("the connection was lost: {}", one_line(&self.message())),
            "what ran in a transaction is rolled back by the server",
        )
    }
}

/// Whether an address is one of this machine's: nobody can listen on another's.
fn is_ours(address: std::net::IpAddr) -> bool {
    address.is_loopback() || std::net::UdpSocket::bind((address, 0)).is_ok()
}
