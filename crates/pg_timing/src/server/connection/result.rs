//! The result of a statement.

use super::PERHAPS_FAULTY;
use super::Sql;
use super::libpq::{Libpq, Opaque, code, owned, shortened};
use crate::error::Error;
use crate::error::SqlState;
use crate::error::one_line;
use libc::c_int;

/// Whether rows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Keep,
    /// counted and discarded
    Discard,
}

/// Rows of text values. NULL is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// names of the columns, if rows were kept
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
    /// number of rows, also of discarded ones
    pub count: u64,
}

impl Rows {
    /// Returns the first column of the first row.
    pub fn value(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }

    /// Returns the memory that the rows take, in bytes. NULL takes memory, too.
    pub fn bytes(&self) -> usize {
        let value = |value: &Option<String>| size_of::<Option<String>>() + value.as_ref().map_or(0, String::len);
        self.rows.iter().map(|row| size_of_val(row) + row.iter().map(value).sum::<usize>()).sum()
    }

    /// Returns the two columns as names and values, without rows that contain NULL.
    pub fn pairs(self) -> Vec<(String, String)> {
        self.rows
            .into_iter()
            .filter_map(|row| row.into_iter().collect::<Option<Vec<_>>>()?.try_into().ok())
            .map(|[name, value]: [String; 2]| (name, value))
            .collect()
    }

    /// Adds the next rows.
    pub fn add(&mut self, next: Rows) {
        self.count += next.count;
        self.rows.extend(next.rows);
        if self.columns.is_empty() {
            self.columns = next.columns;
        }
    }

    /// Returns the columns of the first row as names and values, without those that are NULL.
    pub fn named(self) -> Vec<(String, String)> {
        let values = self.rows.into_iter().next().unwrap_or_default();
        self.columns.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Returns the first column with one line per row: a plan as text or JSON.
    pub fn lines(&self) -> String {
        self.rows.iter().filter_map(|row| row.first()?.as_deref()).collect::<Vec<_>>().join("\n")
    }
}

/// A result of libpq: of a statement, or one of its rows.
pub struct QueryResult {
    pub pq: &'static Libpq,
    pub result: Opaque,
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        // SAFETY: this object owns the result, and nothing uses it afterwards.
        unsafe { (self.pq.PQclear)(self.result) }
    }
}

impl QueryResult {
    /// Returns the rows, or the server's error.
    pub fn read(&self, sql: &Sql, output: Output) -> Result<Rows, Error> {
        // SAFETY: the result is not NULL.
        match unsafe { (self.pq.PQresultStatus)(self.result) } {
            code::TUPLES_OK | code::SINGLE_TUPLE => Ok(self.rows(output)),
            code::COMMAND_OK | code::EMPTY_QUERY => Ok(Rows::default()),
            _ => Err(self.error(sql)),
        }
    }

    /// Returns whether this is one row, and not the end of the statement.
    pub fn is_row(&self) -> bool {
        // SAFETY: the result is not NULL.
        unsafe { (self.pq.PQresultStatus)(self.result) == code::SINGLE_TUPLE }
    }

    /// Returns whether the server expects or sends the data of a COPY. Then it sends no other result.
    pub fn is_copy(&self) -> bool {
        // SAFETY: the result is not NULL.
        matches!(unsafe { (self.pq.PQresultStatus)(self.result) }, code::COPY_OUT | code::COPY_IN | code::COPY_BOTH)
    }

    fn rows(&self, output: Output) -> Rows {
        // SAFETY: the result is not NULL, and the indexes are valid.
        let (rows, columns) = unsafe { ((self.pq.PQntuples)(self.result), (self.pq.PQnfields)(self.result)) };
        let value = |row, column| unsafe {
            // SAFETY: as above.
            match (self.pq.PQgetisnull)(self.result, row, column) {
                0 => owned((self.pq.PQgetvalue)(self.result, row, column)),
                _ => None,
            }
        };
        let row = |row| (0..columns).map(|column| value(row, column)).collect();
        // SAFETY: as above.
        let name = |column| unsafe { owned((self.pq.PQfname)(self.result, column)) }.unwrap_or_default();
        Rows {
            columns: if output == Output::Keep && rows > 0 { (0..columns).map(name).collect() } else { Vec::new() },
            rows: if output == Output::Keep { (0..rows).map(row).collect() } else { Vec::new() },
            count: rows.try_into().unwrap_or(0),
        }
    }

    fn field(&self, field: c_int) -> Option<String> {
        // SAFETY: the result is not NULL; the text is copied at once.
        unsafe { shortened((self.pq.PQresultErrorField)(self.result, field)) }
    }

    /// Returns the server's error with its position in the statement.
    fn error(&self, sql: &Sql) -> Error {
        let Some(mut what) = self.field(code::MESSAGE) else {
            return Error::new("the server sent an unexpected result", PERHAPS_FAULTY);
        };
        let position = self.field(code::POSITION).and_then(|at| at.parse().ok());
        if let Some(place) = sql.shown().zip(position).and_then(|(sql, at)| place(sql, at)) {
            what += &format!(" ({place})");
        }
        let more: Vec<String> = [code::DETAIL, code::HINT].into_iter().filter_map(|field| self.field(field)).collect();
        Error {
            what: one_line(&what),
            hint: match (more.is_empty(), sql.shown()) {
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
    fn rows_without_text_take_memory() {
        let rows = |rows: Vec<Vec<Option<String>>>| Rows { count: rows.len() as u64, rows, ..Rows::default() }.bytes();
        let empty = rows(vec![vec![]]);
        assert!(empty > 0 && rows(vec![vec![None; 1000]]) > 8000);
        assert_eq!(rows(vec![vec![Some("abc".into())]]), rows(vec![vec![None]]) + 3);
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
