//! `pg_timing read`: the output of somebody's pg_test_timing, interpreted.

use super::arguments::{Format, ReadArguments};
use super::{Hint, print};
use crate::pg_test_timing::{ParseError, parse, report};
use crate::render;
use crate::report::{Report, Severity};
use anyhow::anyhow;
use std::io::Read;

/// No pg_test_timing prints more than a few thousand lines.
const MOST: u64 = 16 << 20;

pub fn run(arguments: ReadArguments) -> anyhow::Result<u8> {
    let name =
        if arguments.file.as_os_str() == "-" { "stdin".into() } else { format!("\"{}\"", arguments.file.display()) };
    let bytes = contents(&arguments).map_err(|e| {
        anyhow!("could not read {name}: {}", crate::human::reason(&e)).context(Hint("give a file, or - for stdin"))
    })?;
    if bytes.len() as u64 > MOST {
        return Err(anyhow!("{name}: longer than {} MB", MOST >> 20)
            .context(Hint("cut out the part that pg_test_timing printed")));
    }
    // A letter in another encoding, in the prose around it, spoils nothing.
    let outputs = parse(&String::from_utf8_lossy(&bytes)).map_err(|e| anyhow!("{name}: {e}").context(hint(&e)))?;
    let reports: Vec<Report> = outputs.iter().map(report::report).collect();
    // One document an output, whether there are one or several.
    print(&match arguments.format {
        Format::Text => reports.iter().map(render::text::text).collect::<Vec<_>>().join("\n"),
        Format::Json => reports.iter().map(render::json::json).collect(),
    })?;
    // Whatever is known outweighs what is not.
    Ok(reports.iter().map(|r| r.verdict.severity).max().unwrap_or(Severity::Unknown).exit_status())
}

fn contents(arguments: &ReadArguments) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match arguments.file.as_os_str() == "-" {
        true => std::io::stdin().take(MOST + 1).read_to_end(&mut bytes)?,
        false => std::fs::File::open(&arguments.file)?.take(MOST + 1).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

fn hint(error: &ParseError) -> Hint {
    Hint(match error {
        ParseError::KernelLog => "for a kernel log: pg_timing check --kernel-log FILE",
        _ => "what is read is the output of pg_test_timing, of any PostgreSQL version",
    })
}
