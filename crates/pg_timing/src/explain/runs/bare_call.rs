//! What a timed call takes more in a loop that does nothing else.

use super::Session;
use crate::explain::Statement;
use crate::explain::figures::longer;
use crate::postgres::{Error, Output, SqlState};
use std::sync::atomic::Ordering;

const NAME: &str = "pg_timing_bare";
/// Some ms of them, and a quarter of a second in all where a read of the clock takes 800 ns.
const CALLS: u32 = 20_000;
const RUNS: u32 = 7;

impl Session<'_> {
    /// What a timed call takes more, by a plan of bare calls; `None` if noise hides it, or a limit meant for the
    /// statement is too short for this one.
    pub(super) fn bare_call(&mut self, round_trip_ms: f64) -> Result<Option<f64>, Error> {
        let rows = format!("SELECT count(*) FROM (SELECT generate_series(1, {CALLS})) AS rows");
        let statement = Statement::new(&rows)?;
        self.run(&statement.prepared_as(NAME), Output::Discard).map_err(|error| self.explained(error))?;
        let both = |session: &mut Self| {
            Ok((session.executed(NAME)?.0 - round_trip_ms, session.explain(&statement, "TIMING ON", None)?.1))
        };
        let runs: Result<Vec<(f64, f64)>, Error> = (0..=RUNS).map(|_| both(self)).collect();
        let stopped = self.stop.load(Ordering::Relaxed);
        let runs = match runs {
            Err(error) if error.state.is(SqlState::QUERY_CANCELED) && !stopped => return self.without_bare_call(),
            runs => runs?,
        };
        self.without_bare_call()?;
        // The first is slower.
        let (plain, timed): (Vec<f64>, Vec<f64>) = runs.into_iter().skip(1).unzip();
        let more = longer(&timed, &plain);
        Ok((more.low > 0.0).then(|| more.high / f64::from(CALLS)))
    }

    fn without_bare_call(&mut self) -> Result<Option<f64>, Error> {
        self.run(&format!("DEALLOCATE {NAME}"), Output::Discard).map(|_| None).map_err(|error| self.explained(error))
    }
}
