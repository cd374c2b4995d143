//! What a statement returned.

use super::libpq::{Libpq, Opaque, code, owned};
use crate::error::Error;
use crate::error::SqlState;
use crate::error::one_line;
use libc::c_int;

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

/// Of a statement, or a row of it.
pub struct QueryResult {
    pub pq: &'static Libpq,
    pub result: Opaque,
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used again.
        unsafe { (self.pq.PQclear)(self.result) }
    }
}

impl QueryResult {
    pub fn read(&self, sql: &str, output: Output) -> Result<Rows, Error> {
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
