//! Runs one statement with a time limit, and cancels it after the limit or after Ctrl-C.

use super::libpq::{Libpq, Opaque, c_text, code, owned, shortened};
use super::{Connection, PERHAPS_FAULTY};
use crate::error::{Error, SqlState, one_line};
use crate::server::own_sql;
use libc::{c_char, c_int};
use serde::de::DeserializeOwned;
use std::ptr::null;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Size limit of the rows of one statement, in bytes. A plan over a thousand partitions has a few MB.
const MAX_BYTES: usize = 64 << 20;
/// Additional time after the limit. The server has the same limit, and ends the statement itself.
const GRACE: Duration = Duration::from_secs(2);
/// Time that the server has to accept a cancel request.
const ACCEPT: Duration = Duration::from_secs(2);
/// Interval between cancel requests. The server ignores a request that arrives before it starts the statement.
const CANCEL_INTERVAL: Duration = Duration::from_millis(500);
/// The last request is sent after 5 s. Sorts and JIT compilation can delay the end of a statement.
const MAX_REQUESTS: u32 = 10;

/// Rows of one text column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// without NULL
    pub values: Vec<String>,
    /// number of rows, also of discarded ones
    pub count: u64,
}

impl Rows {
    /// Returns the first value.
    pub fn value(&self) -> Option<&str> {
        self.values.first().map(String::as_str)
    }

    /// Returns the first value, which is JSON. The default stands for NULL, and for JSON that has other fields.
    pub fn json<T: DeserializeOwned + Default>(&self) -> T {
        self.value().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// Returns one line per row: a plan as text or JSON.
    pub fn lines(&self) -> String {
        self.values.join("\n")
    }
}

impl Connection {
    /// Runs one statement, and keeps its rows.
    pub fn run(&mut self, sql: &str) -> Result<Rows, Error> {
        self.run_and(true, sql)
    }

    /// Runs one statement, and discards its rows.
    pub fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.run_and(false, sql).map(|_| ())
    }

    /// Runs one statement and waits for its end. If the user stops it or the time limit is over, the statement is canceled.
    pub fn run_and(&mut self, keep: bool, sql: &str) -> Result<Rows, Error> {
        let text = c_text(sql)?;
        if let Some(error) = &self.final_error {
            return Err(error.clone());
        }
        // The extended protocol accepts only one statement.
        // SAFETY: there are no parameters, so the lists may be NULL.
        let sent =
            unsafe { (self.pq.PQsendQueryParams)(self.conn, text.as_ptr(), 0, null(), null(), null(), null(), 0) };
        if sent == 0 {
            return Err(self.connection_lost());
        }
        // Rows arrive one by one, so that libpq does not collect them.
        // SAFETY: a query has been sent, and no result fetched.
        unsafe { (self.pq.PQsetSingleRowMode)(self.conn) };
        let mut watch = Watch { end: Instant::now() + self.limit + GRACE, next: Instant::now(), requests: 0 };
        let mut rows = Ok(Rows::default());
        let mut bytes = 0;
        while let Some(result) = self.next_result(&mut watch)? {
            let status = result.number(self.pq.PQresultStatus);
            match (&mut rows, status) {
                (Ok(rows), code::TUPLES_OK | code::SINGLE_TUPLE) => bytes += result.add_to(rows, keep),
                (_, code::COMMAND_OK | code::EMPTY_QUERY | code::TUPLES_OK | code::SINGLE_TUPLE) => {}
                (_, code::FATAL_ERROR) => rows = Err(result.error((!self.hides_statements).then_some(sql))),
                // libpq would return the same result of a COPY at once, again and again.
                _ => return Err(self.end_with("the server sent an unexpected result", PERHAPS_FAULTY)),
            }
            if bytes > MAX_BYTES {
                let hint = format!("{PERHAPS_FAULTY}; the transaction is rolled back when the connection ends");
                return Err(self.end_with(format!("the server sent more than {} MB", MAX_BYTES >> 20), hint));
            }
        }
        rows
    }

    /// Waits for the next result. Cancels the statement if it was stopped or takes too long.
    fn next_result(&mut self, watch: &mut Watch) -> Result<Option<QueryResult>, Error> {
        loop {
            let is_due = watch.must_cancel(Instant::now(), self.is_stopped());
            if is_due && (watch.requests > MAX_REQUESTS || !self.cancel()) {
                return Err(self.no_answer());
            }
            let events = match self.number(self.pq.PQflush) {
                // The statement has been sent.
                0 if self.number(self.pq.PQisBusy) == 0 => break,
                0 => libc::POLLIN,
                _ => libc::POLLIN | libc::POLLOUT,
            };
            // libpq closes the socket itself if a message is malformed.
            let is_closed = self.number(self.pq.PQsocket) < 0 || !self.is_open();
            if is_closed || self.wait_for(events) && self.number(self.pq.PQconsumeInput) == 0 {
                return Err(self.connection_lost());
            }
            self.free_notifications();
        }
        // SAFETY: as above.
        let result = unsafe { (self.pq.PQgetResult)(self.conn) };
        Ok((!result.is_null()).then_some(QueryResult { pq: self.pq, result }))
    }

    /// Begins a transaction, `READ ONLY` or `READ WRITE`, with an empty search_path and a time limit for each statement.
    pub fn begin(&mut self, mode: &str, limit: Duration) -> Result<(), Error> {
        self.execute(&own_sql::begin(mode))?;
        self.execute(own_sql::EMPTY_SEARCH_PATH)?;
        self.execute(&own_sql::set_local("statement_timeout", limit.as_millis()))
    }

    /// Ends the transaction, also after an error.
    pub fn roll_back<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        let end = self.execute_always(own_sql::ROLLBACK);
        result.and_then(|value| end.map(|()| value))
    }

    /// Runs a statement that ends or removes something, also after Ctrl-C.
    pub fn execute_always(&mut self, sql: &str) -> Result<(), Error> {
        let ignores_stop = std::mem::replace(&mut self.ignores_stop, true);
        let result = self.execute(sql);
        self.ignores_stop = ignores_stop;
        result
    }

    /// Asks the server to cancel the statement, which then returns an error. Returns whether the server accepted the request.
    ///
    /// libpq waits for the server without a limit, so this happens in a thread that may remain.
    fn cancel(&self) -> bool {
        let pq = self.pq;
        // SAFETY: the connection is not NULL.
        let request = Request(unsafe { (pq.PQgetCancel)(self.conn) });
        let (done, result) = mpsc::channel();
        let send = move || {
            let Request(request) = { request };
            let mut message = [0 as c_char; 256];
            // SAFETY: the request is freed once, also if it is NULL, and the buffer has the given length.
            _ = done.send(unsafe {
                let is_accepted = (pq.PQcancel)(request, message.as_mut_ptr(), message.len() as c_int) != 0;
                (pq.PQfreeCancel)(request);
                is_accepted
            });
        };
        let thread = std::thread::Builder::new().name("cancel".into()).spawn(send);
        thread.is_ok() && result.recv_timeout(ACCEPT).unwrap_or(false)
    }

    /// Frees the notifications that the server sent. libpq collects them.
    fn free_notifications(&self) {
        // SAFETY: the connection is not NULL, and each notification is freed once.
        unsafe {
            loop {
                let notification = (self.pq.PQnotifies)(self.conn);
                if notification.is_null() {
                    return;
                }
                (self.pq.PQfreemem)(notification);
            }
        }
    }

    /// Ends the use of a server that does not answer. Returns the error.
    fn no_answer(&mut self) -> Error {
        let hint = match self.number(self.pq.PQbackendPID) {
            process @ 1.. => {
                format!("to end its session, run in another session: SELECT pg_terminate_backend({process})")
            }
            // Some poolers send no process ID.
            _ => "pg_stat_activity shows the sessions with the application_name pg_timing".into(),
        };
        self.end_with("the server did not end the statement after a cancel request, so it may still run", hint)
    }

    /// Ends the use of the connection. Returns the error, which later statements get, too.
    fn end_with(&mut self, what: impl Into<String>, hint: impl Into<String>) -> Error {
        self.final_error.insert(Error::new(what, hint)).clone()
    }

    /// Returns the error of a lost connection.
    fn connection_lost(&mut self) -> Error {
        let what = format!("the connection was lost: {}", one_line(&self.message()));
        self.end_with(what, "the server rolls back the open transaction")
    }
}

/// The time limits of one statement.
struct Watch {
    /// when the statement should have ended
    end: Instant,
    /// when the next cancel request is due
    next: Instant,
    requests: u32,
}

impl Watch {
    /// Returns whether a cancel request is due, and counts it.
    fn must_cancel(&mut self, now: Instant, is_stopped: bool) -> bool {
        let is_due = (now > self.end || is_stopped) && now >= self.next;
        if is_due {
            self.requests += 1;
            self.next = now + CANCEL_INTERVAL;
        }
        is_due
    }
}

/// Libpq's cancel request, which may move to another thread.
struct Request(Opaque);

// SAFETY: libpq's documentation allows this use in another thread. Only one thread has the request.
unsafe impl Send for Request {}

/// A result of libpq: of a statement, or one of its rows.
struct QueryResult {
    pq: &'static Libpq,
    result: Opaque,
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        // SAFETY: this object owns the result, and nothing uses it afterwards.
        unsafe { (self.pq.PQclear)(self.result) }
    }
}

impl QueryResult {
    fn number(&self, function: unsafe extern "C" fn(Opaque) -> c_int) -> c_int {
        // SAFETY: the result is not NULL, and no function of libpq-fe.h with this type needs more.
        unsafe { function(self.result) }
    }

    /// Adds the rows of this result. Returns the memory that they take, in bytes.
    fn add_to(&self, rows: &mut Rows, keep: bool) -> usize {
        let count = self.number(self.pq.PQntuples);
        rows.count += u64::try_from(count).unwrap_or(0);
        // SAFETY: the result is not NULL. libpq checks the indexes, and returns NULL if there is no column.
        let value = |row| unsafe {
            match (self.pq.PQgetisnull)(self.result, row, 0) {
                0 => owned((self.pq.PQgetvalue)(self.result, row, 0)),
                _ => None,
            }
        };
        let kept = if keep { count } else { 0 };
        let before = rows.values.len();
        rows.values.extend((0..kept).filter_map(value));
        rows.values[before..].iter().map(|value| size_of::<String>() + value.len()).sum()
    }

    fn field(&self, field: c_int) -> Option<String> {
        // SAFETY: the result is not NULL; the text is copied at once.
        unsafe { shortened((self.pq.PQresultErrorField)(self.result, field)) }
    }

    /// Returns the server's error with its position in the statement.
    fn error(&self, sql: Option<&str>) -> Error {
        let Some(mut what) = self.field(code::MESSAGE) else {
            return Error::new("the server sent an unexpected result", PERHAPS_FAULTY);
        };
        let position = self.field(code::POSITION).and_then(|at| at.parse().ok());
        if let Some(place) = sql.zip(position).and_then(|(sql, at)| place(sql, at)) {
            what += &format!(" ({place})");
        }
        let more: Vec<String> = [code::DETAIL, code::HINT].into_iter().filter_map(|field| self.field(field)).collect();
        Error {
            what: one_line(&what),
            hint: match (more.is_empty(), sql) {
                (false, _) => one_line(&more.join("; ")),
                (true, Some(sql)) => format!("the server refused this statement: {}", first_characters(&one_line(sql))),
                (true, None) => "the server refused the statement with these values".into(),
            },
            state: SqlState(self.field(code::SQLSTATE).unwrap_or_default()),
        }
    }
}

/// Returns the line of an error in the statement. `position` counts characters from 1.
fn place(sql: &str, position: usize) -> Option<String> {
    let before: String = sql.chars().take(position.checked_sub(1)?).collect();
    let line = sql.lines().nth(before.matches('\n').count())?;
    Some(format!("in \"{}\"", first_characters(line.trim())))
}

/// Returns the start of a statement, for an error.
fn first_characters(sql: &str) -> String {
    const MAX: usize = 200;
    match sql.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &sql[..end]),
        None => sql.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_canceled_again_and_again_after_the_limit() {
        let canceled = |stopped: bool, seconds: &[f64]| -> Vec<bool> {
            let start = Instant::now();
            let mut watch = Watch { end: start + Duration::from_secs(7), next: start, requests: 0 };
            seconds.iter().map(|&s| watch.must_cancel(start + Duration::from_secs_f64(s), stopped)).collect()
        };
        assert_eq!(canceled(false, &[0.1, 6.9, 7.1, 7.2, 7.7, 12.2]), [false, false, true, false, true, true]);
        assert_eq!(canceled(true, &[0.1, 0.2, 0.7]), [true, false, true]);
    }

    #[test]
    fn an_error_is_one_line_and_shows_its_position() {
        assert_eq!(one_line("connection failed:\n\tno such file\n"), "connection failed:; no such file");
        assert_eq!(place("SELECT 1\nFRM x\n", 10), Some("in \"FRM x\"".into()));
        assert_eq!(place("SELECT", 0), None);
        assert_eq!(place("SELECT", 7), Some("in \"SELECT\"".into()));
        assert_eq!(place(&"ü".repeat(1000), 7).unwrap().chars().count(), 4 + 200 + 4);
    }
}
