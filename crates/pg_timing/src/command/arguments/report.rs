//! The options of `report`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Write the page to FILE, and not to stdout; the file is complete or not changed at all
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// JSON reports of check, read and explain, or - for stdin; without them, this host is measured for 4 seconds
    #[arg(value_name = "FILE.json|-", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}
