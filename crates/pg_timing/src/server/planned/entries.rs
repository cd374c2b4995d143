//! The statements of pg_stat_statements, with their figures.

use crate::error::Error;
use crate::server::connection::Rows;
use crate::server::own_queries::IS_OWN;
use crate::server::session::Session;
use crate::server::settings::{Server, set_hint};
use std::collections::BTreeMap;

/// A longer text is not read. No statement that is executed often is that long.
const MAX_TEXT_BYTES: usize = 100_000;
/// Largest plausible figure: a call every ns for 30 years.
const MAX: f64 = 1e18;

/// What identifies an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    user: u32,
    database: u32,
    /// `None` if the user may not see it
    query: Option<i64>,
    top_level: bool,
}

/// Figures of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub calls: f64,
    pub rows: f64,
    pub exec_ms: f64,
}

impl Figures {
    /// Returns the figures since an earlier snapshot. They are zero after a reset in between.
    pub fn since(self, before: Figures) -> Figures {
        match self.calls >= before.calls && self.rows >= before.rows && self.exec_ms >= before.exec_ms {
            true => Figures {
                calls: self.calls - before.calls,
                rows: self.rows - before.rows,
                exec_ms: self.exec_ms - before.exec_ms,
            },
            false => Figures::default(),
        }
    }

    /// Returns the mean number of rows per execution.
    pub fn rows_per_call(self) -> Option<f64> {
        (self.calls > 0.0).then(|| self.rows / self.calls)
    }

    /// Returns the mean execution time in ms.
    pub fn mean_ms(self) -> f64 {
        if self.calls > 0.0 { self.exec_ms / self.calls } else { 0.0 }
    }

    /// Returns the sum.
    pub fn plus(self, other: Figures) -> Figures {
        Figures { calls: self.calls + other.calls, rows: self.rows + other.rows, exec_ms: self.exec_ms + other.exec_ms }
    }
}

/// A snapshot of all entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    pub figures: BTreeMap<Key, Figures>,
    /// the database of this session
    pub database: u32,
    /// time since the last reset in s
    pub age_s: f64,
    /// how often the server has removed the least used entries
    pub removals: f64,
}

impl Entries {
    /// Returns an error if the server has no pg_stat_statements, or does not fill it.
    pub fn check(server: &Server) -> Result<(), Error> {
        if server.statements_schema.is_none() {
            let hint = match server.setting("pg_stat_statements.track") {
                Some(_) => "run in this database: CREATE EXTENSION pg_stat_statements",
                None => {
                    "add pg_stat_statements to shared_preload_libraries, restart the server, and run: CREATE EXTENSION pg_stat_statements"
                }
            };
            return Err(Error::new("the database has no pg_stat_statements", hint));
        }
        if server.is("pg_stat_statements.track", "none") {
            let hint = set_hint("pg_stat_statements.track", "'top'");
            return Err(Error::new("pg_stat_statements.track is none", hint));
        }
        if server.is("compute_query_id", "off") {
            let hint = set_hint("compute_query_id", "'auto'");
            return Err(Error::new("compute_query_id is off, so pg_stat_statements records nothing", hint));
        }
        Ok(())
    }

    /// Reads the figures of all entries. The server has passed [`Entries::check`].
    pub fn take(session: &mut Session, server: &Server) -> Result<Entries, Error> {
        let Some(schema) = &server.statements_schema else { return Ok(Entries::default()) };
        // The library reports an error if it is not in shared_preload_libraries.
        let facts = session.query(&format!(
            "SELECT d.oid::text, EXTRACT(epoch FROM pg_catalog.now() - i.stats_reset)::text, i.dealloc::text
             FROM pg_catalog.pg_database d, {schema}.pg_stat_statements_info i
             WHERE d.datname = pg_catalog.current_database()"
        ))?;
        let fact = |column: usize| facts.rows.first().and_then(|row| row.get(column)?.as_deref());
        let number = |column: usize| fact(column).and_then(figure).unwrap_or(0.0);
        let rows = session.query(&format!(
            "SELECT userid::text, dbid::text, queryid::text, toplevel::text, calls::text, rows::text, total_exec_time::text
             FROM {schema}.pg_stat_statements(true) WHERE query IS NULL OR NOT {IS_OWN}"
        ))?;
        Ok(Entries {
            figures: figures(rows),
            database: fact(0).and_then(|text| text.parse().ok()).unwrap_or(0),
            age_s: number(1),
            removals: number(2),
        })
    }

    /// Returns the figures of all entries together.
    pub fn total(&self) -> Figures {
        self.figures.values().fold(Figures::default(), |sum, figures| sum.plus(*figures))
    }
}

fn figures(rows: Rows) -> BTreeMap<Key, Figures> {
    let mut all: BTreeMap<Key, Figures> = BTreeMap::new();
    for row in rows.rows {
        if let Some((key, figures)) = entry(&row) {
            // The entries that this user may not see have no query ID.
            let sum = all.entry(key).or_default();
            *sum = sum.plus(figures);
        }
    }
    all
}

fn entry(row: &[Option<String>]) -> Option<(Key, Figures)> {
    let [user, database, query, top_level, calls, rows, exec_ms] = row else { return None };
    let number = |text: &Option<String>| text.as_deref().and_then(figure);
    let key = Key {
        user: user.as_deref()?.parse().ok()?,
        database: database.as_deref()?.parse().ok()?,
        query: query.as_deref().and_then(|text| text.parse().ok()),
        top_level: top_level.as_deref()? == "true",
    };
    Some((key, Figures { calls: number(calls)?, rows: number(rows)?, exec_ms: number(exec_ms)? }))
}

/// Returns a plausible figure.
fn figure(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=MAX).contains(number))
}

impl Key {
    #[cfg(test)]
    pub fn of(query: i64) -> Key {
        Key { user: 10, database: 5, query: Some(query), top_level: true }
    }

    pub fn query(&self) -> Option<i64> {
        self.query
    }

    /// Returns the role that executed the statement.
    pub fn user(&self) -> u32 {
        self.user
    }

    pub fn database(&self) -> u32 {
        self.database
    }

    pub fn is_top_level(&self) -> bool {
        self.top_level
    }
}

/// Reads the texts of these entries. An entry without a text is missing.
pub fn texts(session: &mut Session, server: &Server, keys: &[Key]) -> Result<BTreeMap<Key, String>, Error> {
    let values: Vec<String> = keys
        .iter()
        .filter_map(|key| {
            Some(format!("({}::oid, {}::oid, {}::bigint, {})", key.user, key.database, key.query?, key.top_level))
        })
        .collect();
    let (Some(schema), false) = (&server.statements_schema, values.is_empty()) else { return Ok(BTreeMap::new()) };
    let rows = session.query(&format!(
        "SELECT s.userid::text, s.dbid::text, s.queryid::text, s.toplevel::text, s.query
         FROM {schema}.pg_stat_statements s
         JOIN (VALUES {}) AS wanted (userid, dbid, queryid, toplevel)
             ON (s.userid, s.dbid, s.queryid, s.toplevel) = (wanted.userid, wanted.dbid, wanted.queryid, wanted.toplevel)
         WHERE pg_catalog.octet_length(s.query) <= {MAX_TEXT_BYTES}",
        values.join(", ")
    ))?;
    let text = |row: Vec<Option<String>>| {
        let [user, database, query, top_level, text] = <[Option<String>; 5]>::try_from(row).ok()?;
        let key = Key {
            user: user?.parse().ok()?,
            database: database?.parse().ok()?,
            query: Some(query?.parse().ok()?),
            top_level: top_level? == "true",
        };
        Some((key, text?))
    };
    Ok(rows.rows.into_iter().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: [Option<&str>; 7]) -> Vec<Option<String>> {
        columns.map(|column| column.map(String::from)).to_vec()
    }

    #[test]
    fn hidden_entries_are_counted_together_and_damaged_ones_are_left_out() {
        let hidden = row([Some("10"), Some("5"), None, Some("true"), Some("2"), Some("3"), Some("4.5")]);
        let damaged = row([Some("10"), Some("5"), Some("7"), Some("true"), Some("-2"), Some("3"), Some("4.5")]);
        let read = figures(Rows { rows: vec![hidden.clone(), hidden, damaged, Vec::new()], count: 4 });
        let all: Vec<Figures> = read.into_values().collect();
        assert_eq!(all, [Figures { calls: 4.0, rows: 6.0, exec_ms: 9.0 }]);
    }

    #[test]
    fn figures_after_a_reset_are_not_negative() {
        let figures = |calls| Figures { calls, rows: 1.0, exec_ms: 1.0 };
        assert_eq!(figures(5.0).since(figures(2.0)).calls, 3.0);
        assert_eq!(figures(2.0).since(figures(5.0)), Figures::default());
    }

    #[test]
    fn settings_that_disable_the_statistics_are_named() {
        let server = |name: &str, value: &str| Server {
            statements_schema: Some("public".into()),
            settings: [(name.to_string(), value.to_string())].into(),
            ..Server::default()
        };
        assert!(Entries::check(&server("compute_query_id", "auto")).is_ok());
        for (name, value) in [("pg_stat_statements.track", "none"), ("compute_query_id", "off")] {
            assert!(Entries::check(&server(name, value)).unwrap_err().what.starts_with(&format!("{name} is {value}")));
        }
        let missing = Entries::check(&Server::default()).unwrap_err();
        assert_eq!(missing.what, "the database has no pg_stat_statements");
        // The library is loaded, so no restart is needed.
        let loaded = Server { statements_schema: None, ..server("pg_stat_statements.track", "top") };
        assert_eq!(
            [missing.hint, Entries::check(&loaded).unwrap_err().hint].map(|hint| hint.contains("restart")),
            [true, false]
        );
    }
}
