//! `pg_timing report`: writes one web page about this host, or about the reports in JSON files.

use super::{Input, check, interrupt, print, read_input};
use crate::document::pages::{Entry, of_entries};
use crate::error::{Error, require};
use crate::output_file::OutputFile;
use crate::report::document::{Document, read_all};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use timing_clock::Nanos;

/// A report has some ten KB, or some MB if its plan has thousands of nodes. The parser needs up to 50 times its size.
const MAX_BYTES: u64 = 16 << 20;

const TOO_LONG_HINT: &str = "give the JSON output of pg_timing, and several files if you have many reports";

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/report.txt").trim_end())]
pub struct ReportArguments {
    /// Write the page to FILE, and not to stdout; the file is complete or not changed at all
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// JSON reports of check, read and explain, or - for stdin; without them, this host is measured for 4 seconds
    #[arg(value_name = "FILE.json|-", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

pub fn run(arguments: ReportArguments) -> anyhow::Result<u8> {
    // Refuse an unusable name before the measurement, which takes seconds.
    let output = arguments.output.as_deref().map(open).transpose()?;
    let mut entries = Vec::new();
    if arguments.files.is_empty() {
        let report = check::this_host(Nanos::from_secs(check::DEFAULT_S))?;
        entries.push(Entry { file: None, document: Document::Host(report.into()) });
    }
    for path in &arguments.files {
        entries.extend(self::entries(path)?);
    }
    let page = of_entries(entries);
    match output {
        Some(output) => {
            interrupt::ignore_file_size_signal();
            // A signal waits until the file is complete, so that no partial file remains.
            interrupt::flag_until_restored()?;
            output.replace(page.as_bytes(), None)?;
        }
        None => print(&page)?,
    }
    Ok(0)
}

/// Opens the file for the page. Refuses the name of a JSON file: if the name after -o is forgotten, the first report stands
/// there, and the page would replace it.
fn open(path: &Path) -> Result<OutputFile, Error> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let what = format!("could not write \"{}\": the page is HTML, and this is the name of a JSON file", path.display());
    require(!is_json, what, "name the page like report.html: pg_timing report -o report.html FILE.json")?;
    OutputFile::to_replace(path)
}

/// Returns the reports in a file.
fn entries(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let Input { name, bytes } = read_input(path, MAX_BYTES, TOO_LONG_HINT)?;
    let documents = read_all(&name, &bytes)?;
    let name = name.trim_matches('"');
    let number = documents.len();
    let label = |nth: usize| if number == 1 { name.to_string() } else { format!("{name}, {nth} of {number}") };
    let entry = |(document, nth)| Entry { file: Some(label(nth)), document };
    Ok(documents.into_iter().zip(1..).map(entry).collect())
}
