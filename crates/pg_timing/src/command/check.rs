//! `pg_timing [check]`: measures this host's clocks, or reads a captured tree, and judges them.

use super::arguments::{CheckArguments, Format};
use super::{Hint, interrupt, print, progress, show};
use crate::document;
use crate::host::check::judge;
use crate::host::facts::{Host, KernelLog, LogSource, capture};
use crate::host::measure::Budget;
use crate::host::survey;
use crate::render;
use crate::report::Report;
use anyhow::anyhow;
use std::path::Path;
use timing_clock::Nanos;

const KERNEL_LOG_HINT: Hint = Hint("give the output of dmesg: sudo dmesg | pg_timing check --kernel-log -");
const ROOT_HINT: Hint = Hint("give a captured tree: a directory that contains proc/ and sys/");

const LIMITS_HINT: Hint = Hint("a warning comes first: give it the lower limit, as in -w read=100ns -c read=1us");

pub fn run(arguments: CheckArguments) -> anyhow::Result<u8> {
    let thresholds = arguments.thresholds();
    if let Some(figure) = thresholds.contradiction() {
        let name = figure.name();
        return Err(
            anyhow!("the limit of {name} for a warning (-w) is above the one for critical (-c)").context(LIMITS_HINT)
        );
    }
    let host = host(arguments.root.as_deref())?;
    let source = arguments.kernel_log.as_ref().unwrap_or(&LogSource::Own);
    let log = source.read(&host).map_err(|e| e.context(KERNEL_LOG_HINT))?;
    // Refuse an unusable name before the measurement, which takes seconds.
    let target = arguments.capture.as_deref().map(capture::Target::open).transpose()?;
    let mut report = match survey::of_other_host(&host, &log) {
        Some(report) => report,
        None if host.is_live() => measure(arguments.time_limit(), &host, &log)?,
        None => survey::captured(&host, &log),
    };
    judge(&mut report);
    if let Some(target) = &target {
        write_capture(&host, &log, &report, target)?;
    }
    match (arguments.nagios, arguments.format) {
        (true, _) => print(&render::nagios::check(&report, &thresholds))?,
        (false, Format::Text) => show(&document::host::document(&report))?,
        (false, Format::Json) => print(&render::json::json(&report))?,
    }
    // Without --nagios there are no thresholds.
    Ok(thresholds.severity(&report).exit_status())
}

/// Returns the captured tree in `root`, or this machine.
pub fn host(root: Option<&Path>) -> anyhow::Result<Host> {
    match root {
        Some(root) if !root.is_dir() => {
            Err(anyhow!("--root \"{}\" is not a directory", root.display()).context(ROOT_HINT))
        }
        Some(root) => Ok(Host::captured(root.into())),
        None => Ok(Host::live()),
    }
}

/// Measures this host for this time, and judges the result.
pub fn this_host(limit: Nanos) -> anyhow::Result<Report> {
    let host = Host::live();
    let log = LogSource::Own.read(&host)?;
    let mut report = measure(limit, &host, &log)?;
    judge(&mut report);
    Ok(report)
}

fn measure(limit: Nanos, host: &Host, log: &KernelLog) -> anyhow::Result<Report> {
    let stop = interrupt::flag()?;
    let bar = progress::bar("measuring");
    let budget = Budget::new(limit, &stop);
    Ok(survey::live(host, log, limit, &budget, &mut |done| progress::show(bar.as_ref(), done)))
}

fn write_capture(host: &Host, log: &KernelLog, report: &Report, target: &capture::Target) -> anyhow::Result<()> {
    let lines = log.entries.known().map(|entries| entries.lines_about_clocks()).unwrap_or_default();
    interrupt::ignore_file_size_signal();
    capture::write(host, &lines, report, target)
}
