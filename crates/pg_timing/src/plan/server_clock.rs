//! What a host's report says about the clock of a server on that host.

use super::errors::ONLY_PLAIN_TIME;
use super::tree::Explained;
use crate::error::Error;
use crate::report::compare::why_busy;
use crate::report::{ClockReport, Fact, Report, SYSTEM};

/// The clock of the plan's server.
#[derive(Clone, Debug)]
pub struct ServerClock {
    pub read_ns: f64,
    /// what timing adds to a call of a small function, if it was measured
    pub timed_call_ns: Option<f64>,
    /// read cost of the system clock, if known: it shows how fast the processor is
    pub system_read_ns: Option<f64>,
    /// number of CPUs of the server's host, if known
    pub cpus: Option<usize>,
    /// what the user should know about this figure
    pub note: Option<String>,
}

/// Returns the clock that timed a plan; the plan's settings select it.
pub type ClockOf<'a> = dyn Fn(&Explained) -> Result<ServerClock, Error> + Sync + 'a;

/// A read of the system clock takes longer on any processor that we know.
const FASTEST_SYSTEM_READ_NS: f64 = 14.0;

const TSC_SOURCE: &str = "tsc";
/// The clock of a server with `timing_clock_source` tsc: EXPLAIN reads it without a fence.
const TSC: &str = "rdtsc";
/// The counter of AArch64.
const CNTVCT: &str = "cntvct";

fn clock_source(plan: &Explained) -> Option<&str> {
    plan.settings.get("timing_clock_source").map(String::as_str)
}

impl ServerClock {
    /// Returns whether the server reads the TSC itself. The processor overlaps such a read with other work.
    pub fn is_tsc(&self) -> bool {
        self.read_ns < FASTEST_SYSTEM_READ_NS || self.system_read_ns.is_none_or(|system| system > self.read_ns)
    }

    /// Returns the clock that the server reads, with the read cost that the user gave.
    pub fn given(read_ns: f64, plan: &Explained) -> ServerClock {
        let is_system = clock_source(plan) != Some(TSC_SOURCE);
        ServerClock {
            read_ns,
            timed_call_ns: None,
            system_read_ns: is_system.then_some(read_ns),
            cpus: None,
            note: None,
        }
    }

    /// Returns the clock that the plan's server read, from the report of its host. The plan's settings select it.
    pub fn on_host(host: &Report, plan: &Explained, clock_name: Option<&str>) -> Result<ServerClock, Error> {
        if host.clocks.iter().any(|clock| clock.name == CNTVCT) {
            return Err(Error::new(
                "the host report is from an AArch64 processor, but the costs of timed calls were measured on x86-64 only",
                ONLY_PLAIN_TIME,
            ));
        }
        let source = clock_source(plan);
        let name = clock_name.unwrap_or(if source == Some(TSC_SOURCE) { TSC } else { SYSTEM });
        let read_ns = host.read_cost_ns(name).ok_or_else(|| {
            Error::new(
                format!("the plan's server read {name}, but the host report has no read cost of it"),
                "give --clock NAME for another clock of the report, or --read-cost NS",
            )
        })?;
        let clock = host.clock(name);
        let timed_call_ns = clock.and_then(ClockReport::plausible_timed_call_ns);
        if let Some(call_ns) =
            clock.and_then(|clock| clock.timed_call_ns).filter(|ns| timed_call_ns.is_none() && *ns > read_ns)
        {
            return Err(Error::new(
                format!("in the host report, a read of {name} takes {read_ns} ns, but a timed call {call_ns} ns"),
                "a timed call reads the clock twice; create the report again with pg_timing --format json, or give --read-cost NS",
            ));
        }
        let may_be_tsc = clock_name.is_none() && source.is_none() && host.tsc.used_by_default == Some(true);
        let note = may_be_tsc.then(|| {
            "assumed: the server reads the system clock. PostgreSQL 19 reads the TSC on this host by default: for such a \
             server, give --clock rdtsc"
                .into()
        });
        // Load makes reads longer, so the cost is at most the reported one.
        let busy = match why_busy(host) {
            Fact::Known(()) => None,
            Fact::Unavailable { unavailable } => Some(format!(
                "the read cost in the host report is uncertain ({unavailable}): measure it on a quiet host"
            )),
        };
        let notes: Vec<String> = busy.into_iter().chain(note).collect();
        let note = (!notes.is_empty()).then(|| notes.join(". "));
        // In a container, pg_timing sees the same limit as the server, except for a CPU quota.
        let cpus = [&host.cpus.online, &host.cpus.allowed];
        let cpus = cpus.into_iter().filter_map(|cpus| cpus.known().map(Vec::len)).min().filter(|cpus| *cpus > 0);
        Ok(ServerClock { read_ns, timed_call_ns, system_read_ns: host.read_cost_ns(SYSTEM), cpus, note })
    }
}
