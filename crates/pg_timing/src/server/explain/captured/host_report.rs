//! What a host's report says about the clock of a server on that host.

use super::ServerClock;
use crate::error::Error;
use crate::report::{ClockReport, Report, SYSTEM};
use crate::server::explain::Explained;

const TSC_SOURCE: &str = "tsc";
/// The clock of a server with `timing_clock_source` tsc: EXPLAIN reads it without a fence.
const TSC: &str = "rdtsc";
/// The counter of AArch64.
const CNTVCT: &str = "cntvct";

/// The report of a server's host. It has a read cost of the system clock.
pub struct HostReport(Report);

fn clock_source(plan: &Explained) -> Option<&str> {
    plan.settings.get("timing_clock_source").map(String::as_str)
}

impl ServerClock {
    /// Returns the clock that the server reads, with the read cost that the user gave.
    pub fn given(read_ns: f64, plan: &Explained) -> ServerClock {
        let is_system = clock_source(plan) != Some(TSC_SOURCE);
        ServerClock { read_ns, system_read_ns: is_system.then_some(read_ns), note: None }
    }
}

impl HostReport {
    /// Returns the report, or `None` if it has no read cost of the system clock.
    pub fn new(report: Report) -> Option<HostReport> {
        let report = HostReport(report);
        report.read_cost_ns(SYSTEM).is_some().then_some(report)
    }

    fn clock(&self, name: &str) -> Option<&ClockReport> {
        self.0.clocks.iter().find(|clock| clock.name == name)
    }

    fn read_cost_ns(&self, name: &str) -> Option<f64> {
        self.clock(name)?.read_ns.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// Returns whether the report is from an AArch64 processor.
    fn is_aarch64(&self) -> bool {
        self.clock(CNTVCT).is_some()
    }

    /// Returns the clock that the plan's server read, if its settings show it.
    pub fn clock_of(&self, plan: &Explained) -> Result<ServerClock, Error> {
        if self.is_aarch64() {
            return Err(Error::new(
                "the host report is from an AArch64 processor, but the costs of timed calls were measured on x86-64 only",
                "give --plain-ms MS alone (psql's \\timing without EXPLAIN)",
            ));
        }
        let source = clock_source(plan);
        let name = if source == Some(TSC_SOURCE) { TSC } else { SYSTEM };
        let read_ns = self.read_cost_ns(name).ok_or_else(|| {
            Error::new(
                format!("the plan's server read {name}, but the host report has no read cost of it"),
                "give --read-cost NS instead",
            )
        })?;
        let may_be_tsc = source.is_none() && self.0.tsc.used_by_default == Some(true);
        let note = may_be_tsc.then(|| {
            let option = self.read_cost_ns(TSC).map_or("NS".into(), |ns| format!("{ns:.1}"));
            format!(
                "assumed: the server reads the system clock. PostgreSQL 19 reads the TSC on this host by default. For such \
                 a server, use --read-cost {option} (the TSC's read cost in ns)"
            )
        });
        Ok(ServerClock { read_ns, system_read_ns: self.read_cost_ns(SYSTEM), note })
    }
}
