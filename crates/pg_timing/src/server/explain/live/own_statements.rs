//! pg_timing's own statements: an empty one, a loop of bare calls, and the probe. Each session prepares them.

use super::statement::Statement;
use crate::error::Error;
use crate::server::own_sql;

// Names of prepared statements.
pub const EMPTY: &str = "pg_timing_empty";
pub const BARE_CALLS: &str = "pg_timing_bare_calls";
pub const PROBE: &str = "pg_timing_probe";

/// Rows of the loop of bare calls. It takes some ms, or a quarter of a second in all where a clock read takes 800 ns.
pub const BARE_CALL_ROWS: u32 = 20_000;
/// The probe takes 1 to 3 ms on processors of 2020 to 2024: long compared with a round trip, and short compared with most
/// statements.
const PROBE_ROWS: u32 = 30_000;

/// Returns a statement whose plan consists of bare calls.
pub fn bare_calls() -> Result<Statement, Error> {
    count(BARE_CALL_ROWS)
}

/// Returns the name of each own statement, and the SQL that prepares it.
pub fn prepare_all() -> Result<[(&'static str, String); 3], Error> {
    // The probe only uses the processor and its caches.
    let probe = count(PROBE_ROWS)?;
    Ok([
        (EMPTY, Statement::new("SELECT")?.prepare_as(EMPTY)),
        (BARE_CALLS, bare_calls()?.prepare_as(BARE_CALLS)),
        (PROBE, probe.prepare_as(PROBE)),
    ])
}

fn count(rows: u32) -> Result<Statement, Error> {
    Ok(Statement::new(&own_sql::count_rows(rows))?)
}
