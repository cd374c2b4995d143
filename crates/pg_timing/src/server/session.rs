//! Looks at a server, and leaves nothing behind.

use crate::error::Error;
use crate::server::connection::{Connection, Output, Rows};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A look at statistics takes milliseconds; one that waits for a lock or a full disk gives up.
const LIMIT: Duration = Duration::from_secs(10);

pub struct Session<'a> {
    connection: &'a mut Connection,
    stop: &'a AtomicBool,
}

impl<'a> Session<'a> {
    pub fn new(connection: &'a mut Connection, stop: &'a AtomicBool) -> Session<'a> {
        Session { connection, stop }
    }

    pub fn connection(&self) -> &Connection {
        self.connection
    }

    pub fn settings(&mut self, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
        self.connection.settings(names, self.stop)
    }

    /// The rows of one statement. Each look is a transaction of its own, for statistics stand still
    /// within one; and what is set is set for that long, for a pooler gives the session to others.
    pub fn look(&mut self, sql: &str) -> Result<Rows, Error> {
        self.run("BEGIN READ ONLY")?;
        let limit = LIMIT.as_millis();
        // Nobody else's functions and operators are called.
        let found = self
            .run("SET LOCAL search_path = ''")
            .and_then(|_| self.run(&format!("SET LOCAL statement_timeout = {limit}")))
            .and_then(|_| self.run(sql));
        let end = self.run("ROLLBACK");
        found.and_then(|rows| end.map(|_| rows))
    }

    fn run(&mut self, sql: &str) -> Result<Rows, Error> {
        self.connection.run(sql, Output::Keep, self.stop)
    }
}
