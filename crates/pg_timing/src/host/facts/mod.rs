//! Facts about the host. Every fact comes through a [`Host`], so that a captured tree reads like a live machine. A
//! missing fact is `Unavailable`, with the reason.

mod activity;
pub mod capture;
mod clocksource;
mod cpu;
mod kernel_log;
mod machine;
mod tree;

pub use activity::{ActivityBefore, activity_since, own_use};
pub use clocksource::{CLOCKSOURCE_DIR, CURRENT_CLOCKSOURCE, set_timecounter};
pub use kernel_log::{FollowedLog, KernelLog, LogSource};
pub use machine::about_clocks;

use crate::human::reason;
use crate::report::Fact;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// A machine, or the captured tree of a machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// root of the captured tree; `None` means this machine
    captured: Option<PathBuf>,
}

/// The rest of a longer file is ignored. No file that is read here is as long.
const MAX_BYTES: u64 = 4 << 20;

impl Host {
    /// Returns this machine.
    pub fn live() -> Host {
        Host { captured: None }
    }

    /// Returns the tree captured under `root`.
    pub fn captured(root: PathBuf) -> Host {
        Host { captured: Some(root) }
    }

    /// Returns whether this is the machine that the program runs on.
    pub fn is_live(&self) -> bool {
        self.captured.is_none()
    }

    /// Returns the contents of a file, given its absolute path on the machine. Invalid UTF-8 becomes U+FFFD, so that it
    /// does not end the run.
    pub fn read(&self, path: &str) -> Fact<String> {
        match self.bytes(path) {
            Ok(bytes) => Fact::Known(printable(&String::from_utf8_lossy(&bytes))),
            Err(e) => Fact::unavailable(format!("{path}: {}", reason(&e))),
        }
    }

    fn bytes(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, path: &str) -> std::io::Result<File> {
        match &self.captured {
            None => File::open(path),
            Some(root) => tree::open_file(root, path),
        }
    }

    /// Returns the path of a file in this file system, given its absolute path on the machine.
    pub fn file(&self, path: &str) -> PathBuf {
        match &self.captured {
            None => PathBuf::from(path),
            Some(root) => root.join(path.trim_start_matches('/')),
        }
    }

    /// Returns whether the captured tree has JSON of that name, readable or not.
    pub fn has_captured_json(&self, name: &str) -> bool {
        let is_missing = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        !self.is_live() && !self.open(&json_path(name)).is_err_and(is_missing)
    }

    /// Returns the contents without surrounding white space. An empty file is unavailable.
    pub fn read_line(&self, path: &str) -> Fact<String> {
        match self.read(path) {
            Fact::Known(text) if text.trim().is_empty() => Fact::unavailable(format!("{path}: empty")),
            fact => fact.map(|text| text.trim().to_string()),
        }
    }

    /// Returns a value that is in no file of the machine. A captured tree has it as JSON in `pg_timing/`.
    pub fn captured_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Fact<T> {
        let path = json_path(name);
        self.read(&path).and_then(|text| serde_json::from_str(&text).map_err(|e| format!("{path}: {e}")).into())
    }
}

/// Returns the path of a JSON file in a captured tree.
fn json_path(name: &str) -> String {
    format!("/pg_timing/{name}.json")
}

/// Removes control characters except tabs and line ends, because the text is printed on terminals.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("name"), "a\x1b[31mb\n").unwrap();
        assert_eq!(Host::captured(root.path().into()).read_line("/name"), Fact::Known("a[31mb".into()));
    }
}
