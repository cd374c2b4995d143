//! A fixed piece of work in the same server process. Its time shows how fast the machine is at this moment.

use super::own_statements::PROBE;
use super::session::RunSession;
use crate::error::Error;
use crate::statistics::median;

/// An interruption hits one of them, and the median ignores it.
const RUNS: usize = 3;

/// Returns the time of the probe in ms.
pub fn probe_ms(session: &mut RunSession) -> Result<f64, Error> {
    let times = session.execute_often(PROBE, RUNS)?;
    Ok(median(&times))
}
