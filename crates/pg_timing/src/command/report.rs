//! `pg_timing report`: writes one web page about this host, or about the reports in JSON files.

use super::input::{self, Input};
use super::{Hint, check, interrupt, print};
use crate::document::pages::{Entry, of_entries};
use crate::error::Error;
use crate::output_file::OutputFile;
use crate::report::document::{Document, read_all};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use timing_clock::Nanos;

/// A report has some ten KB, or some MB if its plan has thousands of nodes. The parser needs up to 50 times its size.
const MAX_BYTES: u64 = 16 << 20;

const TOO_LONG_HINT: Hint = Hint("give the JSON output of pg_timing, and several files if you have many reports");

const EXAMPLES: &str = "\
Write a page about this host:
  pg_timing report -o db1.html

Write a page about several hosts. Type the first line on each of them:
  pg_timing check --format json > db1.json
  pg_timing report -o hosts.html db1.json db2.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    let entries = match arguments.files.is_empty() {
        true => {
            let report = check::this_host(Nanos::from_secs(check::DEFAULT_S))?;
            vec![Entry { file: None, document: Document::Host(report.into()) }]
        }
        false => read_files(&arguments.files)?,
    };
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
fn open(path: &Path) -> anyhow::Result<OutputFile> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        let what =
            format!("could not write \"{}\": the page is HTML, and this is the name of a JSON file", path.display());
        return Err(
            Error::new(what, "name the page like report.html: pg_timing report -o report.html FILE.json").into()
        );
    }
    Ok(OutputFile::to_replace(path)?)
}

fn read_files(files: &[PathBuf]) -> anyhow::Result<Vec<Entry>> {
    let names = names(files);
    let entries =
        files.iter().zip(&names).map(|(path, name)| entries(path, name)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(entries.into_iter().flatten().collect())
}

/// Returns the names of the files on the page: without their directories, if that makes no two of them equal.
fn names(files: &[PathBuf]) -> Vec<String> {
    let path = |path: &PathBuf| if path.as_os_str() == "-" { "stdin".into() } else { path.display().to_string() };
    let short = |path: &PathBuf| path.file_name().map(|name| name.display().to_string());
    let short: Vec<Option<String>> = files.iter().map(short).collect();
    let is_unique = |name: &Option<String>| short.iter().filter(|other| *other == name).count() == 1;
    match short.iter().all(is_unique) {
        true => files
            .iter()
            .zip(&short)
            .map(|(file, name)| name.clone().filter(|name| name != "-").unwrap_or_else(|| path(file)))
            .collect(),
        false => files.iter().map(path).collect(),
    }
}

/// Returns the reports in a file.
fn entries(path: &Path, shown_name: &str) -> anyhow::Result<Vec<Entry>> {
    let Input { name, bytes } = input::read(path, MAX_BYTES, TOO_LONG_HINT)?;
    let documents = read_all(&bytes).map_err(|Error { what, hint, .. }| Error::new(format!("{name} {what}"), hint))?;
    let number = documents.len();
    let label = |nth: usize| match number {
        1 => shown_name.to_string(),
        _ => format!("{shown_name}, {nth} of {number}"),
    };
    let entry = |(document, nth)| Entry { file: Some(label(nth)), document };
    Ok(documents.into_iter().zip(1..).map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_same_name_are_told_apart_by_their_directories() {
        let names = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["a/x.json", "-", "b/y.json"]), ["x.json", "stdin", "y.json"]);
        assert_eq!(names(&["a/x.json", "b/x.json"]), ["a/x.json", "b/x.json"]);
    }
}
