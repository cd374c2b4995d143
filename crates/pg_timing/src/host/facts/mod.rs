//! Facts about the host. Every fact comes through a [`Host`], so that a captured tree reads like a live machine. A missing
//! fact is `Unavailable`, with the reason.

mod activity;
mod boot;
pub mod capture;
mod clocksource;
mod cpu;
mod kernel_log;
mod names;
mod ntp;
mod platform;
mod proc_text;
mod sysctl;

pub use activity::{ActivityBefore, activity_since};
pub use clocksource::{CLOCKSOURCE_DIR, CURRENT_CLOCKSOURCE};
pub use kernel_log::{KernelLog, LogSource};
pub use sysctl::set_timecounter;

use crate::human::reason;
use crate::report::Fact;
use std::io::Read;
use std::path::{Path, PathBuf};

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
        std::fs::File::open(self.file(path)?)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the path of a file in this file system, given its absolute path on the machine.
    pub fn file(&self, path: &str) -> std::io::Result<PathBuf> {
        match &self.captured {
            None => Ok(PathBuf::from(path)),
            Some(root) => inside(root, path),
        }
    }

    /// Returns whether the captured tree has JSON of that name, readable or not.
    pub fn has_captured_json(&self, name: &str) -> bool {
        let path = json_path(name);
        self.captured.as_ref().is_some_and(|root| root.join(path.trim_start_matches('/')).exists())
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

/// Returns the path of a regular file in the tree. A link must not lead out of the tree.
fn inside(root: &Path, path: &str) -> std::io::Result<PathBuf> {
    let file = root.join(path.trim_start_matches('/')).canonicalize()?;
    let refused = |why| Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
    if !file.starts_with(root.canonicalize()?) {
        return refused("outside of the captured tree");
    }
    match file.is_file() {
        true => Ok(file),
        false => refused("not a regular file"),
    }
}

/// Removes control characters except tabs and line ends, because the text is printed on terminals.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_outside_of_the_tree_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("secret"));
        std::fs::create_dir_all(root.join("proc")).unwrap();
        std::fs::write(&outside, "x").unwrap();
        std::os::unix::fs::symlink(&outside, root.join("proc/link")).unwrap();
        std::fs::write(root.join("proc/name"), "a\x1b[31mb\n").unwrap();
        let host = Host::captured(root);
        assert_eq!(host.read_line("/proc/name"), Fact::Known("a[31mb".into()));
        for path in ["/proc/link", "/proc/../../secret", "/proc", "/proc/none"] {
            assert!(host.read(path).known().is_none(), "{path}");
        }
    }
}
