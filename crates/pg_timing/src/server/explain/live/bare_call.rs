//! What a timed call takes more in a loop that does nothing else.

use super::Statement;
use super::session::{BARE, Session};
use crate::error::{Error, SqlState};
use crate::statistics::longer;

/// Some ms of them, and a quarter of a second in all where a read of the clock takes 800 ns.
const CALLS: u32 = 20_000;
const RUNS: u32 = 7;

/// A plan of bare calls.
pub(super) fn statement() -> Result<Statement, Error> {
    Ok(Statement::new(&format!("SELECT count(*) FROM (SELECT generate_series(1, {CALLS})) AS rows"))?)
}

impl Session<'_> {
    /// In ms, at most; `None` if noise hides it, or a limit meant for the statement is too short for this one.
    pub(super) fn bare_call(&mut self, round_trip_ms: f64) -> Result<Option<f64>, Error> {
        let statement = statement()?;
        let both = |session: &mut Self| {
            Ok((session.executed(BARE)?.0 - round_trip_ms, session.explain(&statement, "TIMING ON", None)?.1))
        };
        let runs: Result<Vec<(f64, f64)>, Error> = (0..=RUNS).map(|_| both(self)).collect();
        let stopped = self.is_stopped();
        let runs = match runs {
            Err(error) if error.state.is(SqlState::QUERY_CANCELED) && !stopped => return Ok(None),
            runs => runs?,
        };
        // The first is slower.
        let (plain, timed): (Vec<f64>, Vec<f64>) = runs.into_iter().skip(1).unzip();
        let more = longer(&timed, &plain);
        Ok((more.low > 0.0).then(|| more.high / f64::from(CALLS)))
    }
}
