//! A fixed piece of work in the same server process. Its time shows how fast the machine is at this moment.

use super::session::{PROBE, Session};
use super::statement::Statement;
use crate::error::Error;
use crate::statistics::median;

/// Takes about 3 ms on a processor of 2024: long compared with a round trip, and short compared with most statements.
const ROWS: u32 = 30_000;
/// An interruption hits one of them, and the median ignores it.
const RUNS: usize = 3;

/// Returns a statement that only uses the processor and its caches.
pub fn statement() -> Result<Statement, Error> {
    Ok(Statement::new(&format!("SELECT count(*) FROM (SELECT generate_series(1, {ROWS})) AS rows"))?)
}

/// Returns the time of the probe in ms.
pub fn probe_ms(session: &mut Session) -> Result<f64, Error> {
    let times = session.execute_often(PROBE, RUNS)?;
    Ok(median(&times))
}
