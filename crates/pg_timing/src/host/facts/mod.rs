//! What the machine says of itself. Every fact comes through one [`Host`], so that a captured tree
//! reads like a live machine. A fact that cannot be had is `Unavailable`, with the reason.

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

/// The machine, or a captured tree of one.
#[derive(Clone, Debug)]
pub struct Host {
    /// `None`: this machine
    captured: Option<PathBuf>,
}

/// No file that is read here is larger: what is, is not what its name says.
const MOST: u64 = 4 << 20;

impl Host {
    /// This machine.
    pub fn live() -> Host {
        Host { captured: None }
    }

    /// The tree captured under `root`.
    pub fn captured(root: PathBuf) -> Host {
        Host { captured: Some(root) }
    }

    /// Whether this is the machine that the program runs on.
    pub fn is_live(&self) -> bool {
        self.captured.is_none()
    }

    /// The contents of a file, named by its absolute path on the machine. Bytes that are no text
    /// become U+FFFD: junk in a file must not end the run.
    pub fn read(&self, path: &str) -> Fact<String> {
        match self.bytes(path) {
            Ok(bytes) => Fact::Known(printable(&String::from_utf8_lossy(&bytes))),
            Err(e) => Fact::unavailable(format!("{path}: {}", reason(&e))),
        }
    }

    fn bytes(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(self.file(path)?)?.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Where a file of the machine, named by its absolute path there, lies here.
    pub fn file(&self, path: &str) -> std::io::Result<PathBuf> {
        match &self.captured {
            None => Ok(PathBuf::from(path)),
            Some(root) => inside(root, path),
        }
    }

    /// Whether a capture kept something of that name, readable or not.
    pub fn kept(&self, name: &str) -> bool {
        let path = kept_path(name);
        self.captured.as_ref().is_some_and(|root| root.join(path.trim_start_matches('/')).exists())
    }

    /// The contents without the white space around them; an empty file is as good as none.
    pub fn read_line(&self, path: &str) -> Fact<String> {
        match self.read(path) {
            Fact::Known(text) if text.trim().is_empty() => Fact::unavailable(format!("{path}: empty")),
            fact => fact.map(|text| text.trim().to_string()),
        }
    }

    /// What a capture kept beside the tree, under `pg_timing/`: what no file of the machine holds.
    pub fn captured_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Fact<T> {
        let path = kept_path(name);
        self.read(&path).and_then(|text| serde_json::from_str(&text).map_err(|e| format!("{path}: {e}")).into())
    }
}

/// Where in a captured tree lies what no file of the machine holds.
fn kept_path(name: &str) -> String {
    format!("/pg_timing/{name}.json")
}

/// The file in the tree: a regular one, and not one outside that a link leads to.
fn inside(root: &Path, path: &str) -> std::io::Result<PathBuf> {
    let file = root.join(path.trim_start_matches('/')).canonicalize()?;
    let refused = |why| Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
    if !file.starts_with(root.canonicalize()?) {
        return refused("it lies outside the captured tree");
    }
    match file.is_file() {
        true => Ok(file),
        false => refused("not a regular file"),
    }
}

/// Without control characters but tabs and ends of lines: what a file holds goes to terminals.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_and_nothing_outside_it() {
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
