//! `pg_timing [check]`: the host check.

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

pub fn run(arguments: CheckArguments) -> anyhow::Result<u8> {
    let host = host(arguments.root.as_deref())?;
    let log = arguments
        .kernel_log
        .as_ref()
        .unwrap_or(&LogSource::Own)
        .read(&host)
        .map_err(|e| e.context(Hint("it takes what dmesg prints: sudo dmesg | pg_timing check --kernel-log -")))?;
    if let Some(dir) = &arguments.capture {
        // Said before the measuring, and not after it.
        capture::check_target(dir).map_err(|e| e.context(CAPTURE_HINT))?;
    }
    let mut report = match host.is_live() {
        true => measured(&arguments, &host, &log)?,
        false => survey::captured(&host, &log),
    };
    judge(&mut report);
    if let Some(dir) = &arguments.capture {
        captured(&host, &log, &report, dir)?;
    }
    print(&match (arguments.nagios, arguments.format) {
        (true, _) => render::nagios::line(&report),
        (false, Format::Text) => render::text::text(&report),
        (false, Format::Json) => render::json::json(&report),
    })?;
    Ok(report.verdict.severity.exit_status())
}

const CAPTURE_HINT: Hint = Hint("name a directory that does not exist yet, or an empty one");

/// This machine, or the tree captured under `root`.
pub fn host(root: Option<&Path>) -> anyhow::Result<Host> {
    match root {
        Some(root) if !root.is_dir() => Err(anyhow!("--root \"{}\" is not a directory", root.display())
            .context(Hint("it takes a captured tree: a directory with proc/ and sys/ in it"))),
        Some(root) => Ok(Host::captured(root.into())),
        None => Ok(Host::live()),
    }
}

fn measured(arguments: &CheckArguments, host: &Host, log: &KernelLog) -> anyhow::Result<Report> {
    let stop = interrupt::flag()?;
    let bar = progress::bar("measuring");
    let limit = arguments.limit();
    let budget = Budget::new(limit, &stop);
    Ok(survey::live(host, log, limit, &budget, &mut |done| progress::show(bar.as_ref(), done)))
}

fn captured(host: &Host, log: &KernelLog, report: &Report, dir: &Path) -> anyhow::Result<()> {
    let lines = log.entries.known().map(|entries| entries.about_clocks.as_slice()).unwrap_or_default();
    capture::write(host, lines, report, dir).map_err(|e| e.context(CAPTURE_HINT))
}
