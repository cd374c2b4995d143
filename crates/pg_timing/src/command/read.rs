//! `pg_timing read`: interprets the output of pg_test_timing.

use super::values::Format;
use super::{Input, output, print, read_input, with_details};
use crate::document;
use crate::document::text::text;
use crate::error::Error;
use crate::host::check::judge;
use crate::host::pg_test_timing::{KERNEL_LOG, parse, report};
use crate::report::{Report, Severity};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// pg_test_timing prints at most a few thousand lines.
const MAX_BYTES: u64 = 16 << 20;

const TOO_LONG_HINT: &str = "cut out the part that pg_test_timing printed";

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/read.txt").trim_end())]
pub struct ReadArguments {
    /// File with the output of pg_test_timing, or - for stdin
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Show everything: the reasons and risks of the findings, and more kernel messages
    #[arg(long)]
    pub details: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

pub fn run(arguments: ReadArguments) -> anyhow::Result<u8> {
    let Input { name, bytes } = read_input(&arguments.file, MAX_BYTES, TOO_LONG_HINT)?;
    // The output is ASCII. Text around it may have another encoding.
    let input = String::from_utf8_lossy(&bytes);
    let outputs = parse(&input).map_err(|why| {
        let hint = match why {
            KERNEL_LOG => "for a kernel log, type: pg_timing check --kernel-log FILE",
            _ => "give the output of pg_test_timing, from any PostgreSQL version",
        };
        Error::new(format!("{name}: {why}"), hint)
    })?;
    let mut reports: Vec<Report> = outputs.iter().map(report::report).collect();
    report::complete(&input, &outputs, &mut reports);
    reports.iter_mut().for_each(judge);
    // Each output of pg_test_timing becomes one document.
    print(&match arguments.format {
        Format::Text => {
            let command = with_details("read", &[(" ", Some(&arguments.file))]);
            let details = (!arguments.details).then_some(command.as_str());
            let screen = |report| text(&document::host::document(report, details), output());
            reports.iter().map(screen).collect::<Vec<_>>().join("\n")
        }
        Format::Json => reports.iter().map(crate::json::json).collect(),
    })?;
    // The worst verdict counts. A known verdict outweighs an unknown one.
    Ok(reports.iter().map(|r| r.verdict.severity).max().unwrap_or(Severity::Unknown).exit_status())
}
