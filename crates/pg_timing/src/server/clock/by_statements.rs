//! The read cost of a server's clock through the server: statements that read the clock take longer.

use super::{Clocks, known, unknown};
use crate::host::measure::Budget;
use crate::report::{NS_PER_MS, ReadCost, SYSTEM};
use crate::server::own_sql;
use crate::server::session::Session;
use crate::server::settings::Server;
use crate::statistics::{RUN_TO_RUN_VARIATION, median, median_error};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// The least number of pairs. With fewer, the error of the median is unreliable.
const MIN_PAIRS: usize = 7;
const MAX_PAIRS: usize = 40;
/// Measuring time through the server.
const SERVER_TIME: Nanos = Nanos::from_millis(1000.0);
/// Rows of a statement. They fit into a small work_mem, and reading them takes a few ms.
const ROWS: u32 = 50_000;

/// Measures the system clock through the server.
///
/// Two statements alternate. One reads the clock for each row, the other returns a timestamp that already exists. The
/// other work per row is the same, so the difference is one read.
pub fn clocks(session: &mut Session, server: &Server, why: &str, stop: &AtomicBool) -> Clocks {
    let budget = Budget::new(SERVER_TIME, stop);
    let mut pairs = Vec::new();
    let mut failed = None;
    while pairs.len() < MIN_PAIRS || (budget.go_on() && pairs.len() < MAX_PAIRS) {
        match pair(session) {
            Ok(pair) => pairs.push(pair),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let system = from_pairs(&pairs, failed, why);
    let tsc = match (server.uses_tsc(), system.high_ns) {
        (false, _) => system.clone(),
        (true, Some(high)) => ReadCost {
            ns: None,
            low_ns: Some(0.0),
            high_ns: Some(high),
            clock: "tsc".into(),
            how: format!(
                "less than the read cost of the system clock; {why}, and the TSC can be measured only on the server's host"
            ),
        },
        (true, None) => unknown("tsc", &system.how),
    };
    Clocks { system, read: tsc.clone(), node: tsc, here: None }
}

/// Time per row in ns: without and with a read of the clock.
type Pair = (f64, f64);

/// Measures one pair.
fn pair(session: &mut Session) -> Result<Pair, String> {
    let row_ns = |session: &mut Session, function: &str| -> Result<f64, String> {
        let sql = own_sql::explain_timestamps(function, ROWS);
        let rows = session.query(&sql).map_err(|error| error.what)?;
        let ms = execution_ms(&rows.lines())?;
        Ok(ms * NS_PER_MS / f64::from(ROWS))
    };
    Ok((row_ns(session, "statement_timestamp")?, row_ns(session, "clock_timestamp")?))
}

/// Returns the execution time in EXPLAIN's JSON, in ms. The time limit of a query is far below an hour.
fn execution_ms(json: &str) -> Result<f64, String> {
    let plan: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    match plan[0]["Execution Time"].as_f64() {
        Some(ms) if (0.0..3.6e6).contains(&ms) => Ok(ms),
        Some(_) => Err("the Execution Time of the server's EXPLAIN is not plausible".into()),
        None => Err("the server's EXPLAIN has no Execution Time".into()),
    }
}

/// Returns the read cost from the pairs.
fn from_pairs(pairs: &[Pair], failed: Option<String>, why: &str) -> ReadCost {
    if pairs.len() < MIN_PAIRS {
        let failed = failed.unwrap_or_else(|| "stopped".into());
        return unknown(SYSTEM, &format!("{why}, and the measurement through the server failed: {failed}"));
    }
    let differences: Vec<f64> = pairs.iter().map(|(bare, reads)| reads - bare).collect();
    let ns = median(&differences);
    let error = median_error(&differences).max(RUN_TO_RUN_VARIATION * ns);
    if ns + error <= 0.0 {
        return unknown(SYSTEM, &format!("{why}, and through the server it is below the measurement noise"));
    }
    // A wait for a CPU makes any statement longer, so the fastest statements show the lower bound.
    let fastest = |of: fn(&Pair) -> f64| pairs.iter().map(of).fold(f64::INFINITY, f64::min);
    let undisturbed = fastest(|pair| pair.1) - fastest(|pair| pair.0);
    let how = format!("measured through the server, in {} pairs of statements ({why})", pairs.len());
    let cost = known(SYSTEM, ns.max(0.0), error, &how);
    ReadCost { low_ns: cost.low_ns.map(|low| low.min(undisturbed.max(0.0))), ..cost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_unknown_if_it_is_below_noise_or_pairs_are_missing() {
        let pairs = |reads: [f64; 7]| reads.map(|ns| (100.0, 100.0 + ns));
        let good = from_pairs(&pairs([20.0, 21.0, 22.0, 23.0, 24.0, 22.0, 22.0]), None, "x");
        assert_eq!(good.ns, Some(22.0));
        assert!(good.low_ns <= Some(20.0), "{good:?}");
        assert!(good.high_ns > Some(22.0), "{good:?}");
        let noise = from_pairs(&pairs([-20.0, -21.0, -22.0, -23.0, -24.0, -22.0, -22.0]), None, "x");
        assert_eq!((noise.ns, noise.high_ns), (None, None));
        let failed = from_pairs(&[(1.0, 20.0)], Some("no".into()), "x");
        assert!(failed.ns.is_none() && failed.how.ends_with("failed: no"), "{failed:?}");
    }

    #[test]
    fn the_execution_time_is_read_from_json() {
        assert_eq!(execution_ms(r#"[{"Plan": {}, "Execution Time": 6.25}]"#), Ok(6.25));
        for ms in ["1e300", "-1", "1e400"] {
            assert!(execution_ms(&format!(r#"[{{"Execution Time": {ms}}}]"#)).is_err(), "{ms}");
        }
        assert!(execution_ms("[]").is_err() && execution_ms("").is_err());
    }
}
