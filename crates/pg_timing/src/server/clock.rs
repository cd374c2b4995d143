//! Measures the read cost of the server's clock: on this host if the server runs here, or else through the server, because
//! statements that read the clock take longer.

use super::settings::{Server, Session};
use crate::host::check::judge;
use crate::host::facts::{Host, KernelLog};
use crate::host::measure::Budget;
use crate::host::survey;
use crate::report::{NS_PER_MS, ReadCost, Report, SYSTEM};
use crate::server::own_sql;
use crate::statistics::{RUN_TO_RUN_VARIATION, median, median_error};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// Measuring time on this host. It gives the read cost with an error of 1%.
const HOST_TIME: Nanos = Nanos::from_millis(700.0);
/// The least number of pairs. With fewer, the error of the median is unreliable.
const MIN_PAIRS: usize = 7;
const MAX_PAIRS: usize = 40;
/// Measuring time through the server.
const SERVER_TIME: Nanos = Nanos::from_millis(1000.0);
/// Rows of a statement. They fit into a small work_mem, and reading them takes a few ms.
const ROWS: u32 = 50_000;

/// The read costs of the server's clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// the clock of timestamps, in every version
    pub system: ReadCost,
    /// the clock of the timing settings; the same clock, unless PostgreSQL 19 reads the TSC
    pub read: ReadCost,
    /// the clock of plan nodes
    pub node: ReadCost,
    /// the report about this host, if the server runs here
    pub here: Option<Report>,
}

impl Clocks {
    /// Returns the number of CPUs of the server's host, if it was measured.
    pub fn cpus(&self) -> Option<f64> {
        self.here.as_ref().and_then(|here| here.cpus.online.known().map(|cpus| cpus.len() as f64))
    }

    /// Measures the clocks.
    pub fn of(session: &mut Session, server: &Server) -> Clocks {
        let here = match check_location(session, server) {
            Ok(()) => on_host(server, session.connection.stop()),
            Err(why) => return by_statements(session, server, &why),
        };
        match here.read.ns {
            Some(_) => here,
            // For example, the host was too busy for the short measurement.
            None => Clocks { here: here.here, ..by_statements(session, server, &here.read.how) },
        }
    }
}

/// Returns a read cost, with its bounds. Without `ns`, it is unknown.
fn cost(clock: &str, ns: Option<f64>, error: f64, how: &str) -> ReadCost {
    let [low_ns, high_ns] = [-error, error].map(|error| ns.map(|ns| (ns + error).max(0.0)));
    ReadCost { ns, low_ns, high_ns, clock: clock.into(), how: how.into() }
}

/// Returns an error if the server does not run on this host.
///
/// A socket or a loopback address can lead to another host or into a container. So this host must also have a process
/// named postgres with the number of the server's backend.
fn check_location(session: &Session, server: &Server) -> Result<(), String> {
    if !session.connection.is_local() {
        return Err("the server is on another host".into());
    }
    let pid = server.role.pid;
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match comm.starts_with("postgres") || comm.starts_with("postmaster") {
        true => Ok(()),
        false => Err(format!("the server's process {pid} is not visible on this host")),
    }
}

/// Measures the clocks on this host.
fn on_host(server: &Server, stop: &AtomicBool) -> Clocks {
    let host = Host::live();
    let mut report = survey::live(&host, &KernelLog::own(&host), HOST_TIME, &Budget::new(HOST_TIME, stop), &mut |_| ());
    judge(&mut report);
    let of = |name: &str| measured(&report, name);
    let (read, node) = match server.uses_tsc() {
        // PostgreSQL 19 reads the counter without a fence for plan nodes, and with a fence otherwise.
        true => (of("rdtscp"), of("rdtsc")),
        false => (of(SYSTEM), of(SYSTEM)),
    };
    Clocks { system: of(SYSTEM), read, node, here: Some(report) }
}

/// Returns the read cost of a clock in the report.
fn measured(report: &Report, name: &str) -> ReadCost {
    let figures = report.clock(name).and_then(|clock| clock.read_ns.zip(clock.read_spread_ns));
    match figures {
        Some((ns, spread)) => cost(name, Some(ns), spread.max(0.1), "measured on this host, where the server runs"),
        None => cost(name, None, 0.0, "not measurable on this host"),
    }
}

/// Measures the system clock through the server.
///
/// Two statements alternate. One reads the clock for each row, the other returns a timestamp that already exists. The
/// other work per row is the same, so the difference is one read.
fn by_statements(session: &mut Session, server: &Server, why: &str) -> Clocks {
    let stop = session.connection.stop().clone();
    let budget = Budget::new(SERVER_TIME, &stop);
    let mut pairs = Vec::new();
    let mut measured = Ok(());
    while measured.is_ok() && (pairs.len() < MIN_PAIRS || (budget.go_on() && pairs.len() < MAX_PAIRS)) {
        measured = pair(session).map(|pair| pairs.push(pair));
    }
    let system = from_pairs(&pairs, measured.err(), why);
    let mut tsc = system.clone();
    if server.uses_tsc() {
        (tsc.clock, tsc.ns, tsc.low_ns) = ("tsc".into(), None, system.high_ns.map(|_| 0.0));
        if system.high_ns.is_some() {
            tsc.how = format!(
                "less than the read cost of the system clock; {why}, and the TSC can be measured only on the server's host"
            );
        }
    }
    Clocks { system, read: tsc.clone(), node: tsc, here: None }
}

/// Time per row in ns: without and with a read of the clock.
type Pair = (f64, f64);

/// Measures one pair.
fn pair(session: &mut Session) -> Result<Pair, String> {
    let mut row_ns = |function: &str| -> Result<f64, String> {
        let plan = session.query(&own_sql::explain_timestamps(function, ROWS)).map_err(|error| error.what)?;
        Ok(execution_ms(&plan.json())? * NS_PER_MS / f64::from(ROWS))
    };
    Ok((row_ns("statement_timestamp")?, row_ns("clock_timestamp")?))
}

/// Returns the execution time in EXPLAIN's JSON, in ms. The time limit of a query is far below an hour.
fn execution_ms(plan: &serde_json::Value) -> Result<f64, &'static str> {
    let ms = plan[0]["Execution Time"].as_f64().filter(|ms| (0.0..3.6e6).contains(ms));
    ms.ok_or("the server's EXPLAIN has no plausible Execution Time")
}

/// Returns the read cost from the pairs.
fn from_pairs(pairs: &[Pair], failed: Option<String>, why: &str) -> ReadCost {
    if pairs.len() < MIN_PAIRS {
        let failed = failed.unwrap_or_else(|| "stopped".into());
        return cost(SYSTEM, None, 0.0, &format!("{why}, and the measurement through the server failed: {failed}"));
    }
    let differences: Vec<f64> = pairs.iter().map(|(bare, reads)| reads - bare).collect();
    let ns = median(&differences);
    let error = median_error(&differences).max(RUN_TO_RUN_VARIATION * ns);
    if ns + error <= 0.0 {
        return cost(SYSTEM, None, 0.0, &format!("{why}, and through the server it is below the measurement noise"));
    }
    // A wait for a CPU makes any statement longer, so the fastest statements show the lower bound.
    let fastest = |of: fn(&Pair) -> f64| pairs.iter().map(of).fold(f64::INFINITY, f64::min);
    let undisturbed = fastest(|pair| pair.1) - fastest(|pair| pair.0);
    let how = format!("measured through the server, in {} pairs of statements ({why})", pairs.len());
    let cost = cost(SYSTEM, Some(ns.max(0.0)), error, &how);
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
        let of = |json: &str| execution_ms(&serde_json::from_str(json).unwrap_or_default());
        assert_eq!(of(r#"[{"Plan": {}, "Execution Time": 6.25}]"#), Ok(6.25));
        for ms in ["1e300", "-1", "1e400"] {
            assert!(of(&format!(r#"[{{"Execution Time": {ms}}}]"#)).is_err(), "{ms}");
        }
        assert!(of("[]").is_err() && of("").is_err());
    }
}
