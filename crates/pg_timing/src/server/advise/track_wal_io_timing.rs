//! `track_wal_io_timing`: the server reads the clock before and after each write and sync of WAL.

use super::advice::{Setting, advise};
use super::counts::Part;
use super::facts::{Events, Facts};
use crate::report::SettingAdvice;
use crate::server::own_sql;
use crate::server::settings::Server;

const NAME: &str = "track_wal_io_timing";
const PART: &str = "wal";
/// XLogWrite and issue_xlog_fsync in xlog.c: one read before and one after.
const READS: f64 = 2.0;

/// Statistics of WAL writes and syncs.
pub fn part(server: &Server) -> Option<Part> {
    let sql = match server.major() {
        15..=17 => own_sql::WAL_UNTIL_17,
        _ => own_sql::WAL_IO,
    };
    Some(Part { name: PART, sql: sql.into() })
}

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?.to_string();
    let counted = facts.counts.growth(PART, "operations").map(|n| facts.counted(n, READS, READS));
    let view = if facts.server.major() < 18 { "pg_stat_wal" } else { "pg_stat_io" };
    Some(advise(
        facts,
        Setting {
            name: NAME,
            on: value == "on",
            value,
            events: counted.unwrap_or_else(Events::unknown),
            reads_per_event: READS,
            cost: &facts.clocks.read,
            why: format!("two reads of the clock for each write and sync of WAL, which {view} counts"),
            turn_on: "track_wal_io_timing = on".into(),
            turn_off: "track_wal_io_timing = off".into(),
        },
    ))
}
