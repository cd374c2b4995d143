//! The read cost of a server's clock if the server runs on this host: its clocks are measured here.

use super::{Clocks, known, unknown};
use crate::host::check::judge;
use crate::host::facts::{Host, KernelLog};
use crate::host::measure::Budget;
use crate::host::survey;
use crate::report::{ReadCost, Report, SYSTEM};
use crate::server::session::Session;
use crate::server::settings::Server;
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// Measuring time on this host. It gives the read cost with an error of 1%.
const HOST_TIME: Nanos = Nanos::from_millis(700.0);

/// Returns an error if the server does not run on this host.
///
/// A socket or a loopback address can lead to another host or into a container. So this host must also have a process
/// named postgres with the number of the server's backend.
pub fn check_location(session: &Session, server: &Server) -> Result<(), String> {
    if !session.connection().is_local() {
        return Err("the server is on another host".into());
    }
    let pid = server.pid;
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match comm.starts_with("postgres") || comm.starts_with("postmaster") {
        true => Ok(()),
        false => Err(format!("the server's process {pid} is not visible on this host")),
    }
}

/// Measures the clocks on this host.
pub fn clocks(server: &Server, stop: &AtomicBool) -> Clocks {
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
        Some((ns, spread)) => known(name, ns, spread.max(0.1), "measured on this host, where the server runs"),
        None => unknown(name, "not measurable on this host"),
    }
}
