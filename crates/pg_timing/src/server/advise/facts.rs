//! The facts behind the advice: the server, its clocks, and how its statistics grew in the window.

use crate::error::{Error, SqlState, require};
use crate::report::{CoreShare, ReadCost};
use crate::server::clock::Clocks;
use crate::server::own_sql;
use crate::server::settings::{Server, Session};
use serde_json::Value;
use std::collections::BTreeMap;

/// The server, its clocks, and its statistics before and after the window.
#[derive(Default)]
pub struct Facts {
    pub server: Server,
    pub clocks: Clocks,
    pub before: Snapshot,
    pub after: Snapshot,
    pub window_s: f64,
}

/// A backend reports its statistics at the end of a transaction, at most once per second (PGSTAT_MIN_INTERVAL). So the
/// window of the counted events can be longer or shorter by this time.
pub const REPORT_DELAY_S: f64 = 1.0;

/// For a gap that a second run can close.
pub const RUN_AGAIN: &str = "run it again: pg_timing advise";
/// For statistics that the server does not show to this user.
pub const NEEDS_MONITOR: &str = "let a superuser run: GRANT pg_monitor TO \"ROLE\"";
/// For statistics of one database.
pub const OTHER_DATABASES: &str = "run it in each database: pg_timing advise -d DATABASE";

/// Events that read the clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    pub per_s: Option<f64>,
    /// what their clock reads take; missing if the read cost is unknown
    pub share: Option<CoreShare>,
    /// why events are missing
    pub gap: Option<Error>,
}

impl Events {
    /// Marks the count as a lower bound, if there is a reason.
    pub fn or_more(self, gap: Option<Error>) -> Events {
        let share = self.share.map(|share| CoreShare { high: share.high.filter(|_| gap.is_none()), ..share });
        Events { share, gap: gap.or(self.gap), ..self }
    }
}

impl Facts {
    /// Returns counted events, with bounds on all their reads together, each of which has this cost.
    pub fn counted(&self, events: f64, low: f64, high: f64, cost: &ReadCost) -> Result<Events, Error> {
        require(self.window_s > 0.0, "stopped before anything was counted", RUN_AGAIN)?;
        let share = cost.low_ns.zip(cost.high_ns).map(|(low_ns, high_ns)| CoreShare {
            low: low / (self.window_s + REPORT_DELAY_S) * low_ns / 1e9,
            high: (self.window_s > REPORT_DELAY_S).then(|| high / (self.window_s - REPORT_DELAY_S) * high_ns / 1e9),
        });
        Ok(Events { per_s: Some(events / self.window_s), share, gap: None })
    }

    /// Returns the growth of a number.
    pub fn growth(&self, part: &str, name: &str) -> Result<f64, Error> {
        let (before, after) = (self.before.number(part, name)?, self.after.number(part, name)?);
        let reset = |snapshot: &Snapshot| snapshot.number(part, "reset").ok();
        match after - before {
            growth if growth > MAX_GROWTH => Err(not_plausible(name)),
            growth if growth >= 0.0 && reset(&self.before) == reset(&self.after) => Ok(growth),
            _ => Err(Error::new("the statistics were reset during the window", RUN_AGAIN)),
        }
    }

    /// Returns the parts that the server refused, with its reasons.
    pub fn refused(&self) -> BTreeMap<&'static str, &str> {
        let both = self.before.0.iter().chain(&self.after.0);
        both.filter_map(|(part, numbers)| Some((*part, numbers.as_ref().err()?.what.as_str()))).collect()
    }
}

// The parts of the statistics.
pub const SESSIONS: &str = "sessions";
pub const ACTIVITY: &str = "activity";
pub const IO: &str = "io";
pub const WAL: &str = "wal";
pub const FUNCTIONS: &str = "functions";
pub const STATEMENTS: &str = "statements";
pub const COUNTERS: &str = "pg_fast_timing";
pub const TABLES: &str = "tables";

/// Returns the statistics that are read before and after the window: each part with a query of one row of numbers. The column
/// `reset` is the time of the last reset. The statistics of functions have none, so only a smaller number shows a reset.
pub fn statistics(server: &Server) -> Vec<(&'static str, String)> {
    let object = |name| server.extension_object(name).ok().flatten();
    // Sessions of other users are visible only to superusers and to pg_monitor. For others, the type of a session is hidden, too.
    // A statement that waits for a lock makes no calls of plan nodes, and some kinds of statements have none.
    let mut parts = vec![
        (SESSIONS, own_sql::SESSIONS.into()),
        (ACTIVITY, own_sql::DATABASES.into()),
        (IO, if server.major == 15 { own_sql::WRITES_OF_15 } else { own_sql::IO }.into()),
        (WAL, if server.major < 18 { own_sql::WAL_UNTIL_17 } else { own_sql::WAL_IO }.into()),
        (FUNCTIONS, own_sql::FUNCTION_CALLS.into()),
    ];
    // A plan that returns n rows to a client has at least n calls, and one call if it returns no rows. Utility statements such as
    // COPY have rows, but no timed plan. So only texts that start like a statement with a plan count; texts that start with a
    // comment do not. Statements and counters are compared, so they are read one right after the other.
    if let Some((statements, info)) = object("pg_stat_statements").zip(object("pg_stat_statements_info")) {
        parts.push((STATEMENTS, own_sql::statements(&statements, &info)));
    }
    parts.extend(object("pg_fast_timing_counters").map(|function| (COUNTERS, own_sql::counted_calls(&function))));
    // Scans and changed rows.
    parts.push((TABLES, own_sql::TABLES.into()));
    parts
}

/// Largest plausible number: 1 GB per second for 30 years.
const MAX: f64 = 1e18;
/// Largest plausible growth during a window, which is a day or less: 10 GB per second.
const MAX_GROWTH: f64 = 1e15;

/// The plausible numbers of each part with their names, or the reason why they are missing.
#[derive(Clone, Debug, Default)]
pub struct Snapshot(pub BTreeMap<&'static str, Result<BTreeMap<String, f64>, Error>>);

impl Snapshot {
    /// Returns the numbers of all parts. A refused part has a reason instead. A lost connection is an error.
    pub fn take(session: &mut Session, parts: &[(&'static str, String)]) -> Result<Snapshot, Error> {
        let mut taken = BTreeMap::new();
        for (part, sql) in parts {
            let numbers = match session.objects(sql) {
                Err(error) if error.state.ends_session() => return Err(error),
                rows => rows.map(plausible).map_err(|error| {
                    let is_refused = error.state.is(SqlState::INSUFFICIENT_PRIVILEGE);
                    Error::new(error.what, if is_refused { NEEDS_MONITOR } else { RUN_AGAIN })
                }),
            };
            taken.insert(*part, numbers);
        }
        Ok(Snapshot(taken))
    }

    pub fn number(&self, part: &str, name: &str) -> Result<f64, Error> {
        let numbers = self.0.get(part).ok_or_else(|| Error::new("not queried", RUN_AGAIN))?;
        let numbers = numbers.as_ref().map_err(Error::clone)?;
        numbers.get(name).copied().ok_or_else(|| not_plausible(name))
    }
}

/// Returns the plausible numbers of one row. Statistics are never negative.
fn plausible(rows: Vec<BTreeMap<String, Value>>) -> BTreeMap<String, f64> {
    let number = |(name, value): (String, Value)| Some((name, value.as_f64().filter(|n| (0.0..=MAX).contains(n))?));
    rows.into_iter().flatten().filter_map(number).collect()
}

fn not_plausible(name: &str) -> Error {
    Error::new(format!("the server's number of {name} is missing or not plausible"), RUN_AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(before: &[(&str, f64)], after: &[(&str, f64)]) -> Facts {
        Facts { before: Snapshot::of("io", before), after: Snapshot::of("io", after), ..Facts::default() }
    }

    #[test]
    fn missing_numbers_are_errors_and_not_zero() {
        let counts = counts(&[("reads", 1.0)], &[("reads", 4.0)]);
        assert_eq!(counts.growth("io", "reads"), Ok(3.0));
        assert!(counts.growth("io", "writes").is_err() && counts.growth("wal", "reads").is_err());
        assert_eq!(counts.after.number("io", "reads"), Ok(4.0));
        let after = Snapshot([("io", Err(Error::new("permission denied", NEEDS_MONITOR)))].into());
        assert_eq!(Facts { after, ..counts }.refused(), [("io", "permission denied")].into());
    }

    #[test]
    fn numbers_that_are_not_plausible_are_errors() {
        for text in ["1e300", "1e400", "\"inf\"", "\"NaN\"", "-5", "", "0x10", "null", &"9".repeat(400)] {
            let rows = serde_json::from_str(&format!("[{{\"reads\": {text}}}]")).unwrap_or_default();
            let after = Snapshot([("io", Ok(plausible(rows)))].into());
            let counts = Facts { after, ..counts(&[("reads", 1.0)], &[]) };
            let why = Err(not_plausible("reads"));
            assert_eq!(
                (counts.growth("io", "reads"), counts.after.number("io", "reads")),
                (why.clone(), why),
                "{text}"
            );
        }
        let all = plausible(serde_json::from_str(r#"[{"a": 0, "b": 123.5, "c": 9e17, "d": null}]"#).unwrap());
        assert_eq!(all, [("a", 0.0), ("b", 123.5), ("c", 9e17)].map(|(name, n)| (name.into(), n)).into());
        assert!(counts(&[("reads", 0.0)], &[("reads", 9e17)]).growth("io", "reads").is_err());
    }

    #[test]
    fn a_reset_is_noticed_even_if_the_number_is_higher() {
        assert!(counts(&[("reads", 9.0)], &[("reads", 4.0)]).growth("io", "reads").is_err());
        let reset = counts(&[("reads", 1.0), ("reset", 5.0)], &[("reads", 4.0), ("reset", 6.0)]);
        assert!(reset.growth("io", "reads").is_err());
    }

    proptest! {
        #[test]
        fn growth_is_never_negative(before in 0.0..1e15, after in 0.0..1e15) {
            match counts(&[("n", before)], &[("n", after)]).growth("io", "n") {
                Ok(growth) => prop_assert!(growth >= 0.0 && after >= before),
                Err(_) => prop_assert!(after < before),
            }
        }
    }
}
