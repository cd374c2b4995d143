//! Runs one statement with a time limit, and cancels it after the limit or after Ctrl-C.

use super::libpq::{Libpq, Opaque, c_text};
use super::result::{Output, QueryResult, Rows};
use super::{Connection, PERHAPS_FAULTY};
use crate::error::{Error, one_line};
use libc::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Size limit of the rows of one statement, in bytes. A plan over a thousand partitions has a few MB.
const MAX_BYTES: usize = 64 << 20;
/// A statement has one result besides its rows. An error can follow it.
const MAX_RESULTS: usize = 4;
/// Additional time after the limit. The server has the same limit, and ends the statement itself.
const GRACE: Duration = Duration::from_secs(2);
/// Time that the server has to accept a cancel request.
const ACCEPT: Duration = Duration::from_secs(2);
/// Time that the server has to end a statement after a cancel request. Sorts and JIT compilation can delay that.
const END: Duration = Duration::from_secs(5);
/// Interval between cancel requests. The server ignores a request that arrives before it starts the statement.
const INTERVAL: Duration = Duration::from_millis(500);

/// A statement. Errors repeat a part of its text, unless it contains values: they can be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sql {
    text: String,
    has_values: bool,
}

impl Sql {
    pub fn new(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), has_values: false }
    }

    /// Returns a statement whose text is not repeated in errors.
    pub fn with_values(text: impl Into<String>) -> Sql {
        Sql { text: text.into(), has_values: true }
    }

    /// Returns the text for an error.
    pub fn shown(&self) -> Option<&str> {
        (!self.has_values).then_some(&self.text)
    }
}

impl From<&str> for Sql {
    fn from(text: &str) -> Sql {
        Sql::new(text)
    }
}

impl From<&String> for Sql {
    fn from(text: &String) -> Sql {
        Sql::new(text)
    }
}

impl Connection {
    /// Runs one statement and waits for its end. If `stop` is set or the time limit is over, the statement is canceled.
    pub fn run(&mut self, sql: impl Into<Sql>, output: Output, stop: &AtomicBool) -> Result<Rows, Error> {
        let sql = sql.into();
        let text = c_text(&sql.text)?;
        if let Some(error) = &self.final_error {
            return Err(error.clone());
        }
        const NONE: *const *const c_char = std::ptr::null();
        // The extended protocol accepts only one statement.
        // SAFETY: there are no parameters, so the lists may be NULL.
        let sent = unsafe {
            let no_numbers = std::ptr::null();
            (self.pq.PQsendQueryParams)(self.conn, text.as_ptr(), 0, std::ptr::null(), NONE, no_numbers, no_numbers, 0)
        };
        if sent == 0 {
            return Err(self.connection_lost());
        }
        // Rows arrive one by one, so that libpq does not collect them.
        // SAFETY: a query has been sent, and no result fetched.
        unsafe { (self.pq.PQsetSingleRowMode)(self.conn) };
        let mut watch = Watch { stop, start: Instant::now(), limit: self.limit, canceled: None };
        let mut rows = Ok(Rows::default());
        let (mut bytes, mut results) = (0, 0);
        while let Some(result) = self.next_result(&mut watch)? {
            if result.is_copy() {
                return Err(self.protocol_error("the server started a COPY, which pg_timing did not request"));
            }
            match (&mut rows, result.read(&sql, output)) {
                (Ok(rows), Ok(part)) => {
                    bytes += part.bytes();
                    rows.add(part);
                }
                (Ok(_), Err(error)) => rows = Err(error),
                (Err(_), _) => {}
            }
            results += usize::from(!result.is_row());
            if results > MAX_RESULTS {
                return Err(self.protocol_error("the server sent several results for one statement"));
            }
            if bytes > MAX_BYTES {
                return Err(self.protocol_error(&format!("the server sent more than {} MB", MAX_BYTES >> 20)));
            }
        }
        self.record_answer();
        rows
    }

    /// Waits for the next result. Cancels the statement if it was stopped or takes too long.
    fn next_result(&mut self, watch: &mut Watch) -> Result<Option<QueryResult>, Error> {
        loop {
            match watch.step(Instant::now()) {
                Step::Wait => {}
                Step::Cancel if cancel(self.pq, self.conn) => {}
                Step::Cancel | Step::GiveUp => return Err(self.no_answer()),
            }
            // SAFETY: the connection is not NULL in this function.
            let events = match unsafe { (self.pq.PQflush)(self.conn) } {
                // The statement has been sent.
                // SAFETY: as above.
                0 if unsafe { (self.pq.PQisBusy)(self.conn) } == 0 => break,
                0 => libc::POLLIN,
                _ => libc::POLLIN | libc::POLLOUT,
            };
            // SAFETY: as above. libpq closes the socket itself if a message is malformed.
            let is_closed = unsafe { (self.pq.PQsocket)(self.conn) } < 0 || !self.is_open();
            // SAFETY: as above.
            if is_closed || self.wait_for(events) && unsafe { (self.pq.PQconsumeInput)(self.conn) } == 0 {
                return Err(self.connection_lost());
            }
            self.free_notifications();
        }
        // SAFETY: as above.
        let result = unsafe { (self.pq.PQgetResult)(self.conn) };
        Ok((!result.is_null()).then_some(QueryResult { pq: self.pq, result }))
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
        // SAFETY: the connection is not NULL.
        let process = unsafe { (self.pq.PQbackendPID)(self.conn) };
        self.end_with(Error::new("the server did not end the statement after a cancel request", still_runs(process)))
    }

    /// Ends the use of a server that violates the protocol. Returns the error.
    fn protocol_error(&mut self, why: &str) -> Error {
        let hint = format!("{PERHAPS_FAULTY}; the transaction is rolled back when the connection ends");
        self.end_with(Error::new(why, hint))
    }

    /// Ends the use of the connection. Later statements get the same error.
    fn end_with(&mut self, error: Error) -> Error {
        self.final_error.insert(error).clone()
    }

    /// Returns the error of a lost connection.
    fn connection_lost(&mut self) -> Error {
        let what = format!("the connection was lost: {}", one_line(&self.message()));
        self.end_with(Error::new(what, "the server rolls back the open transaction"))
    }
}

/// Returns the hint for a statement that was not canceled. Some poolers send no process ID.
fn still_runs(process: c_int) -> String {
    match process {
        1.. => {
            format!(
                "it may still run; to end its session, run in another session: SELECT pg_terminate_backend({process})"
            )
        }
        _ => "it may still run; pg_stat_activity shows the sessions with the application_name pg_timing".into(),
    }
}

/// The time limits of one statement.
struct Watch<'a> {
    stop: &'a AtomicBool,
    start: Instant,
    limit: Duration,
    /// time of the first and of the last cancel request
    canceled: Option<(Instant, Instant)>,
}

/// What to do about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Wait,
    Cancel,
    GiveUp,
}

impl Watch<'_> {
    fn step(&mut self, now: Instant) -> Step {
        let first = match self.canceled {
            Some((first, _)) if now.duration_since(first) > END => return Step::GiveUp,
            Some((first, last)) if now.duration_since(last) > INTERVAL => first,
            Some(_) => return Step::Wait,
            None if self.stop.load(Ordering::Relaxed) || now.duration_since(self.start) > self.limit + GRACE => now,
            None => return Step::Wait,
        };
        self.canceled = Some((first, now));
        Step::Cancel
    }
}

/// Libpq's cancel request, which may move to another thread.
struct Request(Opaque);

// SAFETY: libpq's documentation allows this use in another thread. Only one thread has the request.
unsafe impl Send for Request {}

/// Asks the server to cancel the statement, which then returns an error. Returns whether the server accepted the request.
///
/// libpq waits for the server without a limit, so this happens in a thread that may remain.
fn cancel(pq: &'static Libpq, conn: Opaque) -> bool {
    // SAFETY: the connection is not NULL.
    let request = Request(unsafe { (pq.PQgetCancel)(conn) });
    if request.0.is_null() {
        return false;
    }
    let (done, result) = mpsc::channel();
    let send = move || {
        let Request(request) = { request };
        let mut message = [0 as c_char; 256];
        // SAFETY: the request is freed once, and the buffer has the given length.
        let taken = unsafe {
            let taken = (pq.PQcancel)(request, message.as_mut_ptr(), message.len() as c_int) != 0;
            (pq.PQfreeCancel)(request);
            taken
        };
        _ = done.send(taken);
    };
    let thread = std::thread::Builder::new().name("cancel".into()).spawn(send);
    thread.is_ok() && result.recv_timeout(ACCEPT).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(stopped: bool, seconds: &[f64]) -> Vec<Step> {
        let (stop, start) = (AtomicBool::new(stopped), Instant::now());
        let mut watch = Watch { stop: &stop, start, limit: Duration::from_secs(5), canceled: None };
        seconds.iter().map(|&s| watch.step(start + Duration::from_secs_f64(s))).collect()
    }

    #[test]
    fn a_statement_is_canceled_after_the_limit_and_then_given_up() {
        use Step::*;
        assert_eq!(
            steps(false, &[0.1, 5.1, 6.9, 7.1, 7.2, 7.7, 8.3, 12.0, 12.2]),
            [Wait, Wait, Wait, Cancel, Wait, Cancel, Cancel, Cancel, GiveUp]
        );
        assert_eq!(steps(true, &[0.1, 0.2, 0.7, 5.2]), [Cancel, Wait, Cancel, GiveUp]);
    }

    #[test]
    fn values_are_not_shown() {
        assert_eq!(Sql::from("SELECT 1").shown(), Some("SELECT 1"));
        assert_eq!(Sql::with_values("EXECUTE q('hunter2')").shown(), None);
    }
}
