//! `pg_timing [check]`: the host check.

use super::arguments::{CheckArguments, Format};
use super::{Hint, interrupt, print, progress};
use crate::host::{Host, LogSource};
use crate::measure::Budget;
use crate::render;
use crate::report::Report;
use crate::survey;
use anyhow::anyhow;

pub fn run(arguments: CheckArguments) -> anyhow::Result<u8> {
    let report = report(&arguments)?;
    print(&match arguments.format {
        Format::Text => render::text::text(&report),
        Format::Json => render::json::json(&report),
    })?;
    Ok(report.verdict.severity.exit_status())
}

fn report(arguments: &CheckArguments) -> anyhow::Result<Report> {
    let host = match &arguments.root {
        Some(root) if !root.is_dir() => {
            return Err(anyhow!("--root \"{}\" is not a directory", root.display())
                .context(Hint("it takes a captured tree: a directory with proc/ and sys/ in it")));
        }
        Some(root) => Host::captured(root.clone()),
        None => Host::live(),
    };
    let log = arguments
        .kernel_log
        .as_ref()
        .unwrap_or(&LogSource::Own)
        .read(&host)
        .map_err(|e| e.context(Hint("it takes a file of what dmesg prints, or - for stdin")))?;
    if !host.is_live() {
        return Ok(survey::captured(&host, &log));
    }
    let stop = interrupt::flag()?;
    let bar = progress::bar("measuring");
    let budget = Budget::new(arguments.duration, &stop);
    Ok(survey::live(&host, &log, arguments.duration, &budget, &mut |done| progress::show(bar.as_ref(), done)))
}
