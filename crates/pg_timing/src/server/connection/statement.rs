//! Runs statements on a connection.

use super::cancel::{Step, Watch, cancel};
use super::memory;
use super::parameters::text;
use super::result::{Output, QueryResult, Rows};
use super::wait::{Direction, wait};
use super::{Connection, PERHAPS_FAULTY, Sql};
use crate::error::Error;
use crate::error::one_line;
use std::sync::atomic::AtomicBool;

/// Size limit of the rows of one statement, in bytes. A plan over a thousand partitions has a few MB.
const MAX_BYTES: usize = 64 << 20;

/// A statement has one result besides its rows. An error can follow it.
const MAX_RESULTS: usize = 4;

impl Connection {
    /// Runs one statement and waits for its end. If `stop` is set or the time limit is over, the statement is canceled.
    pub fn run(&mut self, sql: impl Into<Sql>, output: Output, stop: &AtomicBool) -> Result<Rows, Error> {
        let sql = sql.into();
        let sql_text = text(sql.text())?;
        if let Some(error) = &self.final_error {
            return Err(error.clone());
        }
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
            return Err(self.connection_lost());
        }
        // Rows arrive one by one, so that libpq does not collect them.
        // SAFETY: a query has been sent, and no result fetched.
        unsafe { (self.pq.PQsetSingleRowMode)(self.conn) };
        let mut watch = Watch::new(stop, self.limit);
        self.memory.begin();
        let mut rows = Ok(Rows::default());
        let (mut bytes, mut results) = (0, 0);
        while let Some(result) = self.next_result(&mut watch, bytes)? {
            if result.is_copy() {
                return Err(self.protocol_error("the server started a COPY, which pg_timing did not request"));
            }
            match (&mut rows, result.read(&sql, output, &self.secrets)) {
                (Ok(rows), Ok(part)) => {
                    rows.count += part.count;
                    bytes += part.bytes();
                    rows.rows.extend(part.rows);
                    if rows.columns.is_empty() {
                        rows.columns = part.columns;
                    }
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
        self.memory.end(bytes);
        self.record_answer();
        rows
    }

    /// Waits for the next result. Cancels the statement if it was stopped or takes too long. `bytes` is the size of the
    /// rows until now.
    fn next_result(&mut self, watch: &mut Watch, bytes: usize) -> Result<Option<QueryResult>, Error> {
        loop {
            match watch.step() {
                Step::Wait => {}
                Step::Cancel if cancel(self.pq, self.conn) => {}
                Step::Cancel | Step::GiveUp => return Err(self.no_answer()),
            }
            // SAFETY: the connection is not NULL in this function.
            let direction = match unsafe { (self.pq.PQflush)(self.conn) } {
                // The statement has been sent.
                // SAFETY: as above.
                0 if unsafe { (self.pq.PQisBusy)(self.conn) } == 0 => break,
                0 => Direction::Read,
                _ => Direction::Both,
            };
            // SAFETY: as above.
            let socket = unsafe { (self.pq.PQsocket)(self.conn) };
            // libpq reserves memory when it parses the start of a message, and reads the rest in one call.
            self.check_memory(bytes)?;
            // libpq closes the socket itself if a message is malformed.
            let is_closed = socket < 0 || !self.is_open();
            // SAFETY: as above.
            if is_closed || wait(socket, direction) && unsafe { (self.pq.PQconsumeInput)(self.conn) } == 0 {
                return Err(self.connection_lost());
            }
            // libpq copies a row when it parses its end.
            self.check_memory(bytes)?;
            self.free_notifications();
        }
        // SAFETY: as above.
        let result = unsafe { (self.pq.PQgetResult)(self.conn) };
        Ok((!result.is_null()).then_some(QueryResult { pq: self.pq, result }))
    }

    /// Returns an error if libpq stores too much besides the rows that we keep, which take `rows` bytes.
    fn check_memory(&mut self, rows: usize) -> Result<(), Error> {
        match self.memory.is_exceeded(rows) {
            true => {
                let what = format!("the server sent a row or another message of more than {} MB", memory::LIMIT >> 20);
                let hint = "leave large columns out of the result; if there are none, perhaps a proxy is faulty";
                Err(self.end_with(Error::new(what, hint)))
            }
            false => Ok(()),
        }
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
fn still_runs(process: libc::c_int) -> String {
    match process {
        1.. => {
            format!(
                "it may still run; to end its session, run in another session: SELECT pg_terminate_backend({process})"
            )
        }
        _ => "it may still run; pg_stat_activity shows the sessions with the application_name pg_timing".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_exists_is_named() {
        assert!(still_runs(4096).contains("pg_terminate_backend(4096)"));
        assert!(!still_runs(0).contains("pg_terminate_backend") && !still_runs(-1).contains("-1"));
    }
}
