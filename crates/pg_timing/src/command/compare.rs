//! `pg_timing compare`: shows what changed between two reports of a host.

use super::values::Format;
use super::{Input, print_as, read_input};
use crate::document;
use crate::error::{Error, require};
use crate::host::check::judge;
use crate::host::pg_test_timing::{parse, report::report};
use crate::report::Report;
use crate::report::compare::compare;
use crate::report::document::{Document, read_all};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};

/// A report of check has some 30 kB.
const MAX_BYTES: u64 = 16 << 20;

const INPUT_HINT: &str =
    "give the output of pg_timing check --format json, or of pg_test_timing from any PostgreSQL version";

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/compare.txt").trim_end())]
pub struct CompareArguments {
    /// JSON report of check, or an output of pg_test_timing, from any PostgreSQL version; - is stdin
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// The same, measured after the change
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

pub fn run(arguments: CompareArguments) -> anyhow::Result<u8> {
    let is_twice = [&arguments.before, &arguments.after].iter().all(|path| path.as_os_str() == "-");
    require(!is_twice, "only one of the reports can come from stdin", "give a file for the other one")?;
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let comparison = compare((&before.0, &before.1), (&after.0, &after.1));
    print_as(arguments.format, &comparison, || document::compare::document(&comparison))?;
    Ok(comparison.verdict.effect.exit_status())
}

/// Returns the only report in a file, with its findings and the file's path. Another version may have written it, so this one
/// decides the findings.
fn read(path: &Path) -> Result<(String, Report), Error> {
    let Input { name, bytes } = read_input(path, MAX_BYTES, INPUT_HINT)?;
    let mut reports = if is_json(&bytes) {
        read_all(&name, &bytes)?
    } else {
        // The output is ASCII. Text around it may have another encoding.
        let outputs = parse(&String::from_utf8_lossy(&bytes));
        let outputs = outputs.map_err(|why| Error::new(format!("{name}: {why}"), INPUT_HINT))?;
        outputs.iter().map(|output| Document::Host(report(output).into())).collect()
    };
    let what = format!("{name} contains {} reports, and compare needs one", reports.len());
    require(reports.len() == 1, what, "put each report into its own file")?;
    let Some(Document::Host(mut report)) = reports.pop() else {
        return Err(Error::new(format!("{name} is a report of explain, which cannot be compared"), INPUT_HINT));
    };
    judge(&mut report);
    let path = if path.as_os_str() == "-" { "stdin".into() } else { path.display().to_string() };
    Ok((path, *report))
}

/// Returns whether the text is an object, or a list of objects. A shell's prompt can start with a bracket, too. The reader of
/// JSON also explains what to do about UTF-16.
fn is_json(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return true;
    }
    let bytes = bytes.trim_ascii_start();
    bytes.strip_prefix(b"[").map_or(bytes, <[u8]>::trim_ascii_start).starts_with(b"{")
}
