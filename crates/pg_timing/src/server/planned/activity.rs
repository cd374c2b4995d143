//! The sessions of the server and what they run, from pg_stat_activity.
//!
//! pg_stat_statements counts a statement only at its end, and shows no constants. pg_stat_activity shows both the statements
//! that still run and their texts.

use super::explain::has_no_nodes;
use crate::error::Error;
use crate::server::connection::Rows;
use crate::server::explain::Tokens;
use crate::server::session::Session;
use std::collections::BTreeMap;

/// The sessions of clients and of background workers that can run statements. The server hides the type of a session, and
/// its statement, from users who may not see it. A session that waits for a lock makes no node calls.
const SESSIONS: &str = "SELECT query_id::text,
        EXTRACT(epoch FROM pg_catalog.clock_timestamp() - query_start)::text,
        (datname = pg_catalog.current_database())::text,
        CASE WHEN state IS NULL OR state = 'disabled' THEN 'hidden'
            WHEN state = 'active' AND wait_event_type IS DISTINCT FROM 'Lock' THEN 'active' ELSE 'idle' END,
        CASE WHEN state = 'active' THEN query END,
        usesysid::text
    FROM pg_catalog.pg_stat_activity
    WHERE datid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()
        AND (backend_type IS NULL OR backend_type NOT IN ('autovacuum worker', 'parallel worker', 'walsender')
            AND backend_type NOT LIKE 'logical replication%')";

/// Longer than 30 years is not plausible.
const MAX_AGE_S: f64 = 1e9;
/// The texts that are kept. A workload has fewer statements that matter.
const MAX_TEXTS: usize = 1000;

/// What several looks at the sessions have shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// the last text of each statement that was seen in this database, with its constants, by query ID and role: a role
    /// whose statements are planned must not get the text of another role
    texts: BTreeMap<(i64, u32), String>,
    /// how long the statements have been running, in s, when the sessions were last read
    pub running_s: Vec<f64>,
    /// whether there are sessions whose statements this user may not see
    pub has_hidden: bool,
    /// the most sessions at a time, without this one
    pub sessions: usize,
}

impl Activity {
    /// Reads the sessions.
    pub fn look(&mut self, session: &mut Session) -> Result<(), Error> {
        let rows = session.query(SESSIONS)?;
        self.add(rows);
        Ok(())
    }

    fn add(&mut self, rows: Rows) {
        self.sessions = self.sessions.max(rows.rows.len());
        self.running_s.clear();
        for row in rows.rows {
            let [query, age, is_here, state, text, user] = row.as_slice() else { continue };
            self.has_hidden |= state.as_deref() == Some("hidden");
            let (Some("active"), Some(text)) = (state.as_deref(), text) else { continue };
            if makes_no_calls(text) {
                continue;
            }
            let age = age.as_deref().and_then(|age| age.parse().ok()).filter(|age| (0.0..MAX_AGE_S).contains(age));
            self.running_s.extend(age);
            let query = query.as_deref().and_then(|query| query.parse().ok());
            let user = user.as_deref().and_then(|user| user.parse().ok());
            let has_room = self.texts.len() < MAX_TEXTS;
            if let (Some(query), Some(user), Some("true"), true) = (query, user, is_here.as_deref(), has_room) {
                self.texts.insert((query, user), text.clone());
            }
        }
    }

    /// Returns a statement as this role executed it, with its constants, if it was seen.
    pub fn text(&self, query: i64, user: u32) -> Option<&str> {
        self.texts.get(&(query, user)).map(String::as_str)
    }

    /// Returns the times of the statements that ran for more than half of this window, in s. They are not in
    /// pg_stat_statements.
    pub fn longer_than_half(&self, window_s: f64) -> impl Iterator<Item = f64> {
        self.running_s.iter().copied().filter(move |age| *age > window_s / 2.0)
    }

    #[cfg(test)]
    pub fn running(times_s: &[f64]) -> Activity {
        Activity { running_s: times_s.into(), sessions: times_s.len(), ..Activity::default() }
    }
}

/// Returns whether the statement has no plan nodes that can be timed. COPY has some only with a query in parentheses.
fn makes_no_calls(text: &str) -> bool {
    let mut tokens = Tokens::of(text);
    let is_copy = tokens.next().is_some_and(|first| first.is("COPY"));
    has_no_nodes(text) || is_copy && !tokens.next().is_some_and(|second| second.is_symbol("("))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: [Option<&str>; 6]) -> Vec<Option<String>> {
        columns.map(|column| column.map(String::from)).to_vec()
    }

    fn activity(rows: Vec<Vec<Option<String>>>) -> Activity {
        let mut activity = Activity::default();
        let count = rows.len() as u64;
        activity.add(Rows { rows, count });
        activity
    }

    #[test]
    fn running_statements_are_seen_and_those_without_nodes_are_not() {
        let running =
            |query, age, text| row([Some(query), Some(age), Some("true"), Some("active"), Some(text), Some("10")]);
        let seen = activity(vec![
            running("7", "3.5", "SELECT 1"),
            running("8", "9", "VACUUM t"),
            running("9", "9", "COPY t TO STDOUT"),
            running("10", "1e300", "COPY (SELECT 1) TO STDOUT"),
            row([Some("11"), Some("99"), Some("true"), Some("idle"), None, Some("10")]),
        ]);
        assert_eq!((seen.running_s.as_slice(), seen.sessions, seen.has_hidden), ([3.5].as_slice(), 5, false));
        assert_eq!([7, 8, 9, 11].map(|query| seen.text(query, 10)), [Some("SELECT 1"), None, None, None]);
        // Another role may have written another text with the same query ID.
        assert_eq!(seen.text(7, 11), None);
        assert_eq!((seen.longer_than_half(5.0).count(), seen.longer_than_half(10.0).count()), (1, 0));
    }

    #[test]
    fn sessions_of_other_users_are_hidden_and_texts_of_other_databases_are_not_kept() {
        let seen = activity(vec![
            row([None, None, Some("true"), Some("hidden"), None, None]),
            row([Some("7"), Some("1"), Some("false"), Some("active"), Some("SELECT 1"), Some("10")]),
        ]);
        assert_eq!((seen.has_hidden, seen.text(7, 10), seen.running_s.len()), (true, None, 1));
    }
}
