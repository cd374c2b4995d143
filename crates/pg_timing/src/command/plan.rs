//! `pg_timing explain --plan`: estimates the overhead in a captured plan.

use super::arguments::ExplainArguments;
use super::{Hint, input};
use crate::error::Error;
use crate::report::{ExplainReport, Report, SYSTEM};
use crate::server::explain::{Explained, Inputs, ServerClock, captured};
use anyhow::anyhow;
use std::path::Path;

/// A plan over a thousand partitions has a few MB, and the log of a whole day can contain it.
const MAX_BYTES: u64 = 64 << 20;

/// A report has at most some hundred bytes per CPU and per bin of a histogram. Its parser needs up to 50 times its size.
const MAX_REPORT_BYTES: u64 = 4 << 20;

const TOO_LONG_HINT: Hint = Hint("cut out the part with the plan");
const HOST_REPORT_HINT: Hint = Hint("run on the server's host: pg_timing --format json > FILE");

/// Reads the plan file. Returns the overhead estimated from the read cost, the host report or the plain time.
pub fn report(arguments: &ExplainArguments, plan: &Path) -> anyhow::Result<ExplainReport> {
    let host = arguments.host_report.as_deref().map(read_host_report).transpose()?;
    let clock_of = |plan: &Explained| match (&host, arguments.read_cost) {
        (Some(host), _) => ServerClock::on_host(host, plan),
        (None, ns) => Ok(ServerClock::given(ns.unwrap_or_default(), plan)),
    };
    let inputs = Inputs {
        clock: (host.is_some() || arguments.read_cost.is_some()).then_some(&clock_of),
        plain_ms: arguments.plain_ms,
    };
    let input = input::read(plan, MAX_BYTES, TOO_LONG_HINT)?;
    let with_file_name = |Error { what, hint, .. }: Error| Error::new(format!("{}: {what}", input.name), hint);
    if input.bytes.contains(&0) {
        let hint = "if it is text in another encoding, convert it to UTF-8";
        return Err(with_file_name(Error::new("not a text file", hint)).into());
    }
    // The plan is ASCII. Text around it may have another encoding.
    Ok(captured(&String::from_utf8_lossy(&input.bytes), &inputs).map_err(with_file_name)?)
}

fn read_host_report(path: &Path) -> anyhow::Result<Report> {
    let input = input::read(path, MAX_REPORT_BYTES, HOST_REPORT_HINT)?;
    let report = Report::from_json(&input.bytes)
        .ok_or_else(|| anyhow!("{} is not a host report", input.name).context(HOST_REPORT_HINT))?;
    if report.read_cost_ns(SYSTEM).is_none() {
        return Err(anyhow!("{} has no read cost of the system clock", input.name).context(HOST_REPORT_HINT));
    }
    Ok(report)
}
