//! `pg_timing read`: the output of somebody's pg_test_timing, interpreted.

use super::arguments::{Format, ReadArguments};
use super::{Hint, print};
use crate::pg_test_timing::{ParseError, parse, report};
use crate::render;
use crate::report::{Report, Severity};
use anyhow::{Context, anyhow};
use std::io::Read;

/// No pg_test_timing prints more than a few thousand lines.
const MOST: u64 = 16 << 20;

pub fn run(arguments: ReadArguments) -> anyhow::Result<u8> {
    let name =
        if arguments.file.as_os_str() == "-" { "stdin".into() } else { format!("\"{}\"", arguments.file.display()) };
    let text = contents(&arguments).map_err(|e| {
        anyhow!("could not read {name}: {}", crate::host::reason(&e)).context(Hint("give a file, or - for stdin"))
    })?;
    let outputs = String::from_utf8(text)
        .map_err(|_| ParseError::NotText)
        .and_then(|text| parse(&text))
        .map_err(|e| anyhow!("{name}: {e}").context(hint(&e)))?;
    let reports: Vec<Report> = outputs.iter().map(report::report).collect();
    print(&match arguments.format {
        Format::Text => reports.iter().map(render::text::text).collect::<Vec<_>>().join("\n"),
        Format::Json => match reports.as_slice() {
            [one] => render::json::json(one),
            many => serde_json::to_string_pretty(many).context("JSON")? + "\n",
        },
    })?;
    // Whatever is known outweighs what is not.
    Ok(reports.iter().map(|r| r.verdict.severity).max().unwrap_or(Severity::Unknown).exit_status())
}

fn contents(arguments: &ReadArguments) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match arguments.file.as_os_str() == "-" {
        true => std::io::stdin().take(MOST).read_to_end(&mut bytes)?,
        false => std::fs::File::open(&arguments.file)?.take(MOST).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

fn hint(error: &ParseError) -> Hint {
    Hint(match error {
        ParseError::KernelLog => "for a kernel log: pg_timing check --kernel-log FILE",
        _ => "what is read is the output of pg_test_timing, of any PostgreSQL version",
    })
}
