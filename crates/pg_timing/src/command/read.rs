//! `pg_timing read`: the output of somebody's pg_test_timing, interpreted.

use super::arguments::{Format, ReadArguments};
use super::input::{self, Input};
use super::{Hint, print};
use crate::host::check::judge;
use crate::host::pg_test_timing::{ParseError, parse, report};
use crate::render;
use crate::report::{Report, Severity};
use anyhow::anyhow;

/// No pg_test_timing prints more than a few thousand lines.
const MOST: u64 = 16 << 20;

pub fn run(arguments: ReadArguments) -> anyhow::Result<u8> {
    let Input { name, bytes } =
        input::read(&arguments.file, MOST, Hint("cut out the part that pg_test_timing printed"))?;
    // A letter in another encoding, in the prose around it, spoils nothing.
    let outputs = parse(&String::from_utf8_lossy(&bytes)).map_err(|e| anyhow!("{name}: {e}").context(hint(&e)))?;
    let mut reports: Vec<Report> = outputs.iter().map(report::report).collect();
    reports.iter_mut().for_each(judge);
    // One document an output, whether there are one or several.
    print(&match arguments.format {
        Format::Text => reports.iter().map(render::text::text).collect::<Vec<_>>().join("\n"),
        Format::Json => reports.iter().map(render::json::json).collect(),
    })?;
    // Whatever is known outweighs what is not.
    Ok(reports.iter().map(|r| r.verdict.severity).max().unwrap_or(Severity::Unknown).exit_status())
}

fn hint(error: &ParseError) -> Hint {
    Hint(match error {
        ParseError::KernelLog => "for a kernel log: pg_timing check --kernel-log FILE",
        _ => "what is read is the output of pg_test_timing, of any PostgreSQL version",
    })
}
