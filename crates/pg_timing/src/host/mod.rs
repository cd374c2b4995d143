//! What the machine says of itself. Every fact comes through one [`Host`], so that a captured tree
//! reads like a live machine. A fact that cannot be had is `Unavailable`, with the reason.

mod activity;
mod clocksource;
mod cpu;
mod kernel_log;
mod names;

pub use activity::{ActivityBefore, activity_since};
pub use kernel_log::{KernelLog, LogSource};

use crate::report::Fact;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The machine, or a captured tree of one.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

/// No file that is read here is larger: what is, is not what its name says.
const MOST: u64 = 4 << 20;

impl Host {
    /// This machine.
    pub fn live() -> Host {
        Host { root: "/".into() }
    }

    /// The tree captured under `root`.
    pub fn captured(root: PathBuf) -> Host {
        Host { root }
    }

    /// Whether this is the machine that the program runs on.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The contents of a file, named by its absolute path on the machine. Bytes that are no text
    /// become U+FFFD: junk in a file must not end the run.
    pub fn read(&self, path: &str) -> Fact<String> {
        let file = self.root.join(path.trim_start_matches('/'));
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&file).and_then(|f| f.take(MOST).read_to_end(&mut bytes));
        match read {
            Ok(_) => Fact::Known(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) => Fact::unavailable(format!("{path}: {}", reason(&e))),
        }
    }

    /// The contents without the white space around them; an empty file is as good as none.
    pub fn read_line(&self, path: &str) -> Fact<String> {
        match self.read(path) {
            Fact::Known(text) if text.trim().is_empty() => Fact::unavailable(format!("{path}: empty")),
            fact => fact.map(|text| text.trim().to_string()),
        }
    }
}

/// An error of the system in its words, without Rust's ` (os error 2)`.
pub fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_string(),
        None => text,
    }
}
