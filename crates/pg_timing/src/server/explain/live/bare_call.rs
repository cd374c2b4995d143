//! The overhead of a timed call in a loop that does nothing else.

use super::own_statements::{BARE_CALL_ROWS, BARE_CALLS};
use super::session::RunSession;
use crate::error::Error;
use crate::statistics::paired_difference;

const RUNS: u32 = 7;

/// Returns the upper limit of one call's overhead in ms, or `None` if noise hides the overhead.
pub fn max_overhead_ms(session: &mut RunSession, round_trip_ms: f64) -> Result<Option<f64>, Error> {
    let run_pair = |session: &mut RunSession| {
        let baseline = session.execute(BARE_CALLS)?.0 - round_trip_ms;
        Ok((baseline, session.explain_bare_calls()?.execution_ms))
    };
    let pairs: Result<Vec<(f64, f64)>, Error> = (0..=RUNS).map(|_| run_pair(session)).collect();
    // The first pair is a warm-up.
    let (baseline, timed): (Vec<f64>, Vec<f64>) = pairs?.into_iter().skip(1).unzip();
    let overhead = paired_difference(&timed, &baseline);
    Ok((overhead.low > 0.0).then(|| overhead.high / f64::from(BARE_CALL_ROWS)))
}
