//! What a read of the server's clock costs: measured here if the server runs here, else through it.

use super::session::Session;
use super::settings::Server;
use crate::host::check::judge;
use crate::host::facts::{Host, KernelLog};
use crate::host::measure::Budget;
use crate::host::survey;
use crate::report::{ReadCost, Report, SYSTEM};
use crate::statistics::{ANOTHER_TIME, median, spread};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// The clocks that a server reads.
#[derive(Clone, Debug)]
pub struct Clocks {
    /// what timestamps are made of, whatever the version
    pub system: ReadCost,
    /// what the settings time with: another one only where 19 reads the TSC
    pub read: ReadCost,
    /// what plan nodes are timed by
    pub node: ReadCost,
    /// the check of the host, where the server runs on this one
    pub here: Option<Report>,
}

/// As long as a glance takes: a read is known to 1% then.
const HERE: Nanos = Nanos::from_millis(700.0);
/// A median of fewer has no spread to speak of.
const LEAST_PAIRS: usize = 7;
const MOST_PAIRS: usize = 40;
/// Of the measuring through the server.
const THROUGH: Nanos = Nanos::from_millis(1000.0);
/// They fit into the least work_mem that is in use, and last a few ms.
const ROWS: u32 = 50_000;

impl Clocks {
    pub fn of(session: &mut Session, server: &Server, stop: &AtomicBool) -> Clocks {
        let here = match on_this_host(session, server) {
            Ok(()) => here(server, stop),
            Err(why) => return through(session, server, &why, stop),
        };
        match here.read.ns {
            Some(_) => here,
            // Too busy for the short look, say.
            None => Clocks { here: here.here, ..through(session, server, &here.read.how, stop) },
        }
    }
}

/// A socket or a loopback address may be the end of a tunnel, or lead into a container; that a process
/// of the server's name has the number that the server gives its own is seen here only if it runs here.
fn on_this_host(session: &Session, server: &Server) -> Result<(), String> {
    if !session.connection().is_local() {
        return Err("the server is on another host".into());
    }
    let pid = server.pid;
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match comm.starts_with("postgres") || comm.starts_with("postmaster") {
        true => Ok(()),
        false => Err(format!("the server's process {pid} is not seen on this host")),
    }
}

fn here(server: &Server, stop: &AtomicBool) -> Clocks {
    let host = Host::live();
    let mut report = survey::live(&host, &KernelLog::own(&host), HERE, &Budget::new(HERE, stop), &mut |_| ());
    judge(&mut report);
    let of = |name: &str| measured(&report, name);
    let (read, node) = match server.uses_tsc() {
        // EXPLAIN's nodes are timed by the bare counter, everything else behind a fence.
        true => (of("rdtscp"), of("rdtsc")),
        false => (of(SYSTEM), of(SYSTEM)),
    };
    Clocks { system: of(SYSTEM), read, node, here: Some(report) }
}

fn measured(report: &Report, name: &str) -> ReadCost {
    let figures = report.clock(name).and_then(|clock| clock.read_ns.zip(clock.read_spread_ns));
    match figures {
        Some((ns, spread)) => between(name, ns, spread.max(0.1), "measured on this host, where the server runs"),
        None => unknown(name, "it could not be measured on this host"),
    }
}

/// One statement that reads the clock for each row beside one that asks for a timestamp that is there
/// already, in turns, timed by the server: what else a row takes is the same in both.
fn through(session: &mut Session, server: &Server, why: &str, stop: &AtomicBool) -> Clocks {
    let budget = Budget::new(THROUGH, stop);
    let mut pairs = Vec::new();
    let mut failed = None;
    while pairs.len() < LEAST_PAIRS || (budget.go_on() && pairs.len() < MOST_PAIRS) {
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
            how: format!("less than the system clock takes; {why}, and only there the TSC itself can be measured"),
        },
        (true, None) => unknown("tsc", &system.how),
    };
    Clocks { system, read: tsc.clone(), node: tsc, here: None }
}

/// What a row takes without the clock and with it, in ns.
type Pair = (f64, f64);

fn pair(session: &mut Session) -> Result<Pair, String> {
    let row_ns = |session: &mut Session, function: &str| -> Result<f64, String> {
        let sql = format!(
            "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, SUMMARY ON, FORMAT JSON) \
             SELECT pg_catalog.count(pg_catalog.{function}()) FROM pg_catalog.generate_series(1, {ROWS})"
        );
        let rows = session.look(&sql).map_err(|error| error.what)?;
        let ms = execution_ms(&rows.lines())?;
        Ok(ms * 1e6 / f64::from(ROWS))
    };
    Ok((row_ns(session, "statement_timestamp")?, row_ns(session, "clock_timestamp")?))
}

fn execution_ms(json: &str) -> Result<f64, String> {
    let plan: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    plan[0]["Execution Time"].as_f64().ok_or_else(|| "the server's EXPLAIN has no Execution Time".into())
}

fn from_pairs(pairs: &[Pair], failed: Option<String>, why: &str) -> ReadCost {
    if pairs.len() < LEAST_PAIRS {
        let failed = failed.unwrap_or_else(|| "it was stopped".into());
        return unknown(SYSTEM, &format!("{why}, and measuring through the server failed: {failed}"));
    }
    let each: Vec<f64> = pairs.iter().map(|(bare, reads)| reads - bare).collect();
    let ns = median(&each);
    let off = spread(&each).max(ANOTHER_TIME * ns);
    if ns + off <= 0.0 {
        return unknown(SYSTEM, &format!("{why}, and through the server it could not be told apart from nothing"));
    }
    // A server that has to wait for a CPU takes longer for everything, but now and then it has not.
    let least = |of: fn(&Pair) -> f64| pairs.iter().map(of).fold(f64::INFINITY, f64::min);
    let undisturbed = least(|pair| pair.1) - least(|pair| pair.0);
    let how = format!("measured through the server, in {} pairs of statements ({why})", pairs.len());
    let known = between(SYSTEM, ns.max(0.0), off, &how);
    ReadCost { low_ns: known.low_ns.map(|low| low.min(undisturbed.max(0.0))), ..known }
}

fn between(clock: &str, ns: f64, off: f64, how: &str) -> ReadCost {
    ReadCost {
        ns: Some(ns),
        low_ns: Some((ns - off).max(0.0)),
        high_ns: Some(ns + off),
        clock: clock.into(),
        how: how.into(),
    }
}

fn unknown(clock: &str, how: &str) -> ReadCost {
    ReadCost { ns: None, low_ns: None, high_ns: None, clock: clock.into(), how: how.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_give_a_figure_with_its_spread_or_none() {
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
    fn the_servers_own_time() {
        assert_eq!(execution_ms(r#"[{"Plan": {}, "Execution Time": 6.25}]"#), Ok(6.25));
        assert!(execution_ms("[]").is_err() && execution_ms("").is_err());
    }
}
