//! `pg_timing explain --plan`: how much of a captured plan is the clock.

use super::arguments::ExplainArguments;
use super::{Hint, input};
use crate::error::Error;
use crate::report::{ClockReport, ExplainReport, SYSTEM};
use crate::server::explain::{Explained, Inputs, ServerClock, captured};
use crate::statistics::two_deviations;
use anyhow::anyhow;
use serde::Deserialize;
use std::path::Path;

/// The plan of a thousand partitions is a few MB, and a day's log may hold it.
const MOST: u64 = 64 << 20;

const TOO_LONG: Hint = Hint("cut out the part with the plan");
const HOST_REPORT: Hint = Hint("it takes what \"pg_timing --format json\" prints on the server's host");

pub fn report(arguments: &ExplainArguments, plan: &Path) -> anyhow::Result<ExplainReport> {
    let host = arguments.host_report.as_deref().map(HostReport::read).transpose()?;
    let read = |plan: &Explained| match (&host, arguments.read_cost) {
        (Some(host), _) => host.read_of(plan),
        (None, ns) => Ok(given(ns.unwrap_or_default(), plan)),
    };
    let known = Inputs {
        clock: (host.is_some() || arguments.read_cost.is_some()).then_some(&read),
        plain_ms: arguments.plain_ms,
    };
    let input = input::read(plan, MOST, TOO_LONG)?;
    let named = |Error { what, hint, .. }: Error| Error::new(format!("{}: {what}", input.name), hint);
    if input.bytes.contains(&0) {
        return Err(named(Error::new("not text", "convert it to UTF-8, if it is text in another encoding")).into());
    }
    // A letter in another encoding, in the prose around it, spoils nothing.
    Ok(captured(&String::from_utf8_lossy(&input.bytes), &known).map_err(named)?)
}

/// What is needed of the check's report on the server's host.
#[derive(Deserialize)]
struct HostReport {
    clocks: Vec<ClockReport>,
    #[serde(default)]
    tsc: Tsc,
}

#[derive(Default, Deserialize)]
struct Tsc {
    used_by_default: Option<bool>,
}

const TSC_SOURCE: &str = "tsc";

fn source_of(plan: &Explained) -> Option<&str> {
    plan.settings.get("timing_clock_source").map(String::as_str)
}

/// By --read-cost, which is of whatever clock the server reads.
fn given(ns: f64, plan: &Explained) -> ServerClock {
    ServerClock {
        read_ns: ns,
        system_read_ns: (source_of(plan) != Some(TSC_SOURCE)).then_some(ns),
        run_variation: 0.0,
        note: None,
    }
}

/// The clock of a server with `timing_clock_source` tsc: EXPLAIN reads it unfenced.
const TSC: &str = "rdtsc";

impl HostReport {
    fn read(path: &Path) -> anyhow::Result<HostReport> {
        let input = input::read(path, MOST, HOST_REPORT)?;
        let not_one = || anyhow!("{} is no report of a host", input.name).context(HOST_REPORT);
        let report: HostReport = serde_json::from_slice(&input.bytes).map_err(|_| not_one())?;
        match report.cost(SYSTEM) {
            Some(_) => Ok(report),
            None => Err(anyhow!("{} has no read cost of the system's clock", input.name).context(HOST_REPORT)),
        }
    }

    fn clock(&self, name: &str) -> Option<&ClockReport> {
        self.clocks.iter().find(|clock| clock.name == name)
    }

    fn cost(&self, name: &str) -> Option<f64> {
        self.clock(name)?.read_ns.filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// How much one run differs from another: a read is a fixed piece of work, and what its cost moves by, any run's
    /// time does, or it loses more to interruptions. Of what differs more than 0.9, little can be said.
    fn differ(&self, name: &str) -> f64 {
        let clock = self.clock(name).and_then(|clock| clock.read_spread_ns.zip(clock.read_ns));
        let moves = clock.map(|(spread, ns)| two_deviations(spread) / ns);
        let each = [moves, self.lost()].into_iter().flatten();
        each.filter(|differ| differ.is_finite()).fold(0.0, f64::max).min(0.9)
    }

    /// The share of its time that was lost to interruptions while clocks were read: all of them, for each had a
    /// fraction of a second.
    fn lost(&self) -> Option<f64> {
        let in_loops = self.clocks.iter().filter_map(|clock| Some((clock.gaps.as_ref()?, clock.loop_ns?, clock.reads)));
        let (lost, all) = in_loops.fold((0.0, 0.0), |(lost, all), (gaps, loop_ns, reads)| {
            let over = loop_ns * reads as f64;
            (lost + gaps.share * over, all + over)
        });
        (all > 0.0).then_some(lost / all)
    }

    /// The clock that the plan's server read, as far as its settings tell.
    fn read_of(&self, plan: &Explained) -> Result<ServerClock, Error> {
        let source = source_of(plan);
        let name = if source == Some(TSC_SOURCE) { TSC } else { SYSTEM };
        let ns = self.cost(name).ok_or_else(|| {
            Error::new(
                format!("the plan's server read {name}, and the host's report has no cost of it"),
                "give --read-cost NS",
            )
        })?;
        let unsure = source.is_none() && self.tsc.used_by_default == Some(true);
        let note = unsure.then(|| {
            let tsc = self.cost(TSC).map(crate::human::duration).unwrap_or("less".into());
            format!("taken for a server that reads the system's clock; PostgreSQL 19 reads the TSC on that host unless it is told otherwise: then --read-cost is {tsc}")
        });
        Ok(ServerClock { read_ns: ns, system_read_ns: self.cost(SYSTEM), run_variation: self.differ(name), note })
    }
}
