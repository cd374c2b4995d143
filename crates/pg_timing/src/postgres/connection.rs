//! One session: statements one at a time, which Ctrl-C ends.

use super::libpq::{Libpq, Opaque, libpq};
use super::parameters::{Parameters, text};
use super::{Error, Password, SqlState, Target};
use libc::{c_char, c_int, c_void};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// From libpq-fe.h.
mod code {
    use libc::c_int;
    pub const CONNECTION_OK: c_int = 0;
    pub const PING_NO_RESPONSE: c_int = 2;
    pub const EMPTY_QUERY: c_int = 0;
    pub const COMMAND_OK: c_int = 1;
    pub const TUPLES_OK: c_int = 2;
    pub const SINGLE_TUPLE: c_int = 9;
    pub const SQLSTATE: c_int = b'C' as c_int;
    pub const MESSAGE: c_int = b'M' as c_int;
    pub const DETAIL: c_int = b'D' as c_int;
    pub const HINT: c_int = b'H' as c_int;
    pub const POSITION: c_int = b'P' as c_int;
}

/// How often the flag of Ctrl-C is looked at while a statement runs.
const LOOK: Duration = Duration::from_millis(50);

/// What is done with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Keep,
    /// Received one by one, and forgotten.
    Discard,
}

/// Rows of texts; NULL is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub rows: Vec<Vec<Option<String>>>,
    /// how many there were, kept or not
    pub count: u64,
}

impl Rows {
    /// The first column of the first row.
    pub fn value(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }

    /// Names and values: two columns. Rows where one is NULL are left out.
    pub fn pairs(self) -> Vec<(String, String)> {
        self.rows
            .into_iter()
            .filter_map(|row| row.into_iter().collect::<Option<Vec<_>>>()?.try_into().ok())
            .map(|[name, value]: [String; 2]| (name, value))
            .collect()
    }

    /// The first column, a line a row: a plan as text or JSON.
    pub fn lines(&self) -> String {
        self.rows.iter().filter_map(|row| row.first()?.as_deref()).collect::<Vec<_>>().join("\n")
    }
}

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
            return Err(Error::new(
                one_line(&connection.message()),
                "the options are psql's: what psql connects to, this does",
            ));
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
        host.starts_with(['/', '@']) || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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
        let mut cancelled = false;
        // SAFETY: the connection is not NULL, in all of this.
        while unsafe { (self.pq.PQisBusy)(self.conn) } != 0 {
            if !cancelled && stop.load(Ordering::Relaxed) {
                self.cancel();
                cancelled = true;
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
            "nothing was changed: what ran in a transaction was rolled back",
        )
    }
}

struct QueryResult {
    pq: &'static Libpq,
    result: Opaque,
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used again.
        unsafe { (self.pq.PQclear)(self.result) }
    }
}

impl QueryResult {
    fn read(&self, sql: &str, output: Output) -> Result<Rows, Error> {
        // SAFETY: the result is not NULL, in all of this.
        match unsafe { (self.pq.PQresultStatus)(self.result) } {
            code::TUPLES_OK | code::SINGLE_TUPLE => Ok(self.rows(output)),
            code::COMMAND_OK | code::EMPTY_QUERY => Ok(Rows::default()),
            _ => Err(self.error(sql)),
        }
    }

    fn rows(&self, output: Output) -> Rows {
        // SAFETY: the result is not NULL, and the indexes are within what it has.
        let (rows, columns) = unsafe { ((self.pq.PQntuples)(self.result), (self.pq.PQnfields)(self.result)) };
        let value = |row, column| unsafe {
            // SAFETY: as above.
            match (self.pq.PQgetisnull)(self.result, row, column) {
                0 => owned((self.pq.PQgetvalue)(self.result, row, column)),
                _ => None,
            }
        };
        let row = |row| (0..columns).map(|column| value(row, column)).collect();
        Rows {
            rows: if output == Output::Keep { (0..rows).map(row).collect() } else { Vec::new() },
            count: rows.try_into().unwrap_or(0),
        }
    }

    fn field(&self, field: c_int) -> Option<String> {
        // SAFETY: the result is not NULL; the text is copied at once.
        unsafe { owned((self.pq.PQresultErrorField)(self.result, field)) }
    }

    fn error(&self, sql: &str) -> Error {
        let mut what = self.field(code::MESSAGE).unwrap_or_else(|| "the server did not answer as expected".into());
        if let Some(place) = self.field(code::POSITION).and_then(|at| place(sql, at.parse().ok()?)) {
            what += &format!(" ({place})");
        }
        let more: Vec<String> = [code::DETAIL, code::HINT].into_iter().filter_map(|field| self.field(field)).collect();
        Error {
            what: one_line(&what),
            hint: one_line(&more.join("; ")),
            state: SqlState(self.field(code::SQLSTATE).unwrap_or_default()),
        }
    }
}

/// Where in a statement something is wrong: its line. `position` counts characters from 1.
fn place(sql: &str, position: usize) -> Option<String> {
    let before: String = sql.chars().take(position.checked_sub(1)?).collect();
    let line = sql.lines().nth(before.matches('\n').count())?;
    Some(format!("in \"{}\"", line.trim()))
}

/// A copy of a C text; `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with NUL.
unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// libpq and servers write several lines; an error is one.
fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_and_say_where() {
        assert_eq!(one_line("connection failed:\n\tno such file\n"), "connection failed:; no such file");
        assert_eq!(place("SELECT 1\nFRM x\n", 10), Some("in \"FRM x\"".into()));
        assert_eq!(place("SELECT", 0), None);
        assert_eq!(place("SELECT", 7), Some("in \"SELECT\"".into()));
    }
}
