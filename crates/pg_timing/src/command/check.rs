//! `pg_timing [check]`: measures this host's clocks, or reads a captured tree, and judges them.

use super::arguments::{CheckArguments, Format};
use super::{Hint, interrupt, print, progress};
use crate::host::check::judge;
use crate::host::facts::{Host, KernelLog, LogSource, capture};
use crate::host::measure::Budget;
use crate::host::survey;
use crate::render;
use crate::report::Report;
use anyhow::anyhow;
use std::path::Path;

const KERNEL_LOG_HINT: Hint = Hint("give the output of dmesg: sudo dmesg | pg_timing check --kernel-log -");
const ROOT_HINT: Hint = Hint("give a captured tree: a directory that contains proc/ and sys/");
const CAPTURE_HINT: Hint = Hint("give a directory that is empty or does not exist yet");

pub fn run(arguments: CheckArguments) -> anyhow::Result<u8> {
    let host = host(arguments.root.as_deref())?;
    let source = arguments.kernel_log.as_ref().unwrap_or(&LogSource::Own);
    let log = source.read(&host).map_err(|e| e.context(KERNEL_LOG_HINT))?;
    if let Some(dir) = &arguments.capture {
        // Refuse an unusable directory before the measurement, which takes seconds.
        capture::check_target(dir).map_err(|e| e.context(CAPTURE_HINT))?;
    }
    let mut report = match host.is_live() {
        true => measure(&arguments, &host, &log)?,
        false => survey::captured(&host, &log),
    };
    judge(&mut report);
    if let Some(dir) = &arguments.capture {
        write_capture(&host, &log, &report, dir)?;
    }
    print(&match (arguments.nagios, arguments.format) {
        (true, _) => render::nagios::line(&report),
        (false, Format::Text) => render::text::text(&report),
        (false, Format::Json) => render::json::json(&report),
    })?;
    Ok(report.verdict.severity.exit_status())
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

fn measure(arguments: &CheckArguments, host: &Host, log: &KernelLog) -> anyhow::Result<Report> {
    let stop = interrupt::flag()?;
    let bar = progress::bar("measuring");
    let limit = arguments.time_limit();
    let budget = Budget::new(limit, &stop);
    Ok(survey::live(host, log, limit, &budget, &mut |done| progress::show(bar.as_ref(), done)))
}

fn write_capture(host: &Host, log: &KernelLog, report: &Report, dir: &Path) -> anyhow::Result<()> {
    let lines = log.entries.known().map(|entries| entries.about_clocks.as_slice()).unwrap_or_default();
    capture::write(host, lines, report, dir).map_err(|e| e.context(CAPTURE_HINT))
}
