//! What a host's report says about the clock of a server on that host.

use super::ServerClock;
use crate::error::Error;
use crate::report::{ClockReport, Report, SYSTEM};
use crate::server::explain::Explained;
use crate::statistics::two_deviations;

const TSC_SOURCE: &str = "tsc";
/// The clock of a server with `timing_clock_source` tsc: EXPLAIN reads it without a fence.
const TSC: &str = "rdtsc";

/// The report of a server's host. It has a read cost of the system clock.
pub struct HostReport(Report);

fn clock_source(plan: &Explained) -> Option<&str> {
    plan.settings.get("timing_clock_source").map(String::as_str)
}

impl ServerClock {
    /// Returns the clock that the server reads, with the read cost that the user gave.
    pub fn given(read_ns: f64, plan: &Explained) -> ServerClock {
        let is_system = clock_source(plan) != Some(TSC_SOURCE);
        ServerClock { read_ns, system_read_ns: is_system.then_some(read_ns), run_variation: 0.0, note: None }
    }
}

impl HostReport {
    /// Accepts a report with a read cost of the system clock.
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

    /// Returns the run-to-run variation on this host, as a fraction of at most 0.9.
    ///
    /// A clock read is always the same work, so its cost varies only with the machine's speed. Runs are assumed to vary as
    /// much as the read cost (two standard deviations), or by the share of interruptions if that is larger.
    fn run_variation(&self, name: &str) -> f64 {
        let clock = self.clock(name).and_then(|clock| clock.read_spread_ns.zip(clock.read_ns));
        let read_cost = clock.map(|(spread, ns)| two_deviations(spread) / ns);
        let variations = [read_cost, self.interrupted_share()].into_iter().flatten();
        variations.filter(|variation| variation.is_finite()).fold(0.0, f64::max).min(0.9)
    }

    /// Returns the share of time lost to interruptions, over all clocks: each clock was read only for a short time.
    fn interrupted_share(&self) -> Option<f64> {
        let clocks = self.0.clocks.iter().filter_map(|clock| Some((clock.gaps.as_ref()?, clock.loop_ns?, clock.reads)));
        let (lost, total) = clocks.fold((0.0, 0.0), |(lost, total), (gaps, loop_ns, reads)| {
            let time = loop_ns * reads as f64;
            (lost + gaps.share * time, total + time)
        });
        (total > 0.0).then_some(lost / total)
    }

    /// Returns the clock that the plan's server read, if its settings show it.
    pub fn clock_of(&self, plan: &Explained) -> Result<ServerClock, Error> {
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
        let (system_read_ns, run_variation) = (self.read_cost_ns(SYSTEM), self.run_variation(name));
        Ok(ServerClock { read_ns, system_read_ns, run_variation, note })
    }
}
