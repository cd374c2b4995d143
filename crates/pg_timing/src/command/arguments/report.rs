//! The options of `report`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Write the page to FILE, and not to stdout; the file is complete or not changed at all
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// JSON reports of check, read and explain, or - for stdin; without them, this host is measured for 4 seconds
    #[arg(value_name = "FILE.json|-")]
    pub files: Vec<PathBuf>,
}
