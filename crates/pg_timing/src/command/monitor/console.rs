//! Events on stdout and notes on stderr, without the screen. Neither blocks the samples.

use crate::escape;
use crate::monitor::lines::Lines;
use std::fs::File;
use std::io::{Result, stderr, stdout};
use std::os::fd::AsFd;

const HINT: &str = "let a program read stdout, or free space; --events FILE writes the events to a file, too";

pub struct Console {
    events: Lines,
    notes: Lines,
}

impl Console {
    pub fn start() -> Result<Console> {
        let lines = |file: &dyn AsFd| Lines::start(File::from(file.as_fd().try_clone_to_owned()?));
        Ok(Console { events: lines(&stdout())?, notes: lines(&stderr())? })
    }

    /// Prints events, each in its line. The results are those of [`Lines::append`].
    pub fn print(&self, lines: impl IntoIterator<Item = String>) -> std::result::Result<u64, String> {
        self.events.append(lines).map_err(|why| failed(&why))
    }

    /// Prints a note on stderr. If stderr cannot be written, nothing can report that.
    pub fn note(&self, text: &str) {
        _ = self.notes.append([format!("pg_timing: {}\n", escape::line(text))]);
    }

    /// Prints an error and its hint on stderr.
    pub fn error(&self, what: &str, hint: &str) {
        error(&self.notes, what, hint);
    }

    /// Waits until everything is printed, for two seconds at most. Returns whether all events were printed.
    pub fn finish(self) -> bool {
        let Console { events, notes } = self;
        let unwritten = events.finish();
        if let Some((number, why)) = &unwritten {
            let what = format!("{} not printed: {}", were(*number), failed(why));
            error(&notes, &what, HINT);
        }
        notes.finish();
        unwritten.is_none()
    }
}

fn error(notes: &Lines, what: &str, hint: &str) {
    _ = notes.append([format!("pg_timing: error: {}\nhint: {}\n", escape::line(what), escape::line(hint))]);
}

/// Returns "1 event", or "2 events".
pub fn events(number: u64) -> String {
    if number == 1 { "1 event".into() } else { format!("{number} events") }
}

/// Returns "1 event was", or "2 events were".
pub fn were(number: u64) -> String {
    format!("{} {}", events(number), if number == 1 { "was" } else { "were" })
}

fn failed(why: &str) -> String {
    format!("could not write to stdout: {why}")
}
