//! Facts about the host. Every fact comes through a [`Host`], so that a captured tree reads like a live machine. A
//! missing fact is `Unavailable`, with the reason.

pub mod capture;
mod kernel_log;
mod machine;

pub use kernel_log::{FollowedLog, KernelLog};
pub use machine::{activity_since, counters, own_use, parameters_about_clocks};

use crate::human::reason;
use crate::json::possible;
use crate::report::*;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use timing_clock::ClockSources;

/// A machine, or the captured tree of a machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// root of the captured tree; `None` means this machine
    captured: Option<PathBuf>,
}

/// The file with the current clock source. Writing a name to it switches the clock source.
pub const CURRENT_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The file with the available clock sources.
const AVAILABLE_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

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
        let mut bytes = Vec::new();
        let read = self.open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        read.map(|_| printable(&String::from_utf8_lossy(&bytes))).map_err(|e| format!("{path}: {}", reason(&e))).into()
    }

    fn open(&self, path: &str) -> std::io::Result<File> {
        match &self.captured {
            None => File::open(path),
            Some(root) => capture::open_file(root, path),
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
        let line = |text: String| Some(text.trim().to_string()).filter(|line| !line.is_empty());
        self.read(path).and_then(|text| Fact::of(line(text), format!("{path}: empty")))
    }

    /// Returns a value that is in no file of the machine. A captured tree has it as JSON in `pg_timing/`.
    pub fn captured_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Fact<T> {
        let path = json_path(name);
        let read = |text: String| possible(serde_json::from_str(&text).map_err(|error| error.to_string())?);
        self.read(&path).and_then(|text| read(text).map_err(|why| format!("{path}: {why}")).into())
    }

    /// Returns the current and the available clock sources.
    pub fn clocksource(&self) -> Clocksource {
        let not_a_name = format!("{CURRENT_CLOCKSOURCE}: not the name of a clock source");
        let current = self.read_line(CURRENT_CLOCKSOURCE);
        let current = current.and_then(|name| Fact::of(is_name(&name).then_some(name), not_a_name));
        let available = self.read_line(AVAILABLE_CLOCKSOURCE);
        let available = available.map(|names| usable_names(names.split_whitespace().map(String::from)));
        Clocksource { current, available, before: None }
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

impl Clocksource {
    /// Returns the current and the available clock sources, if both are known.
    pub fn known(&self) -> Option<(&String, &Vec<String>)> {
        self.current.known().zip(self.available.known())
    }

    /// Returns the names of the kernel's clock sources, if they are known.
    pub fn names(&self) -> Option<ClockSources> {
        let (current, available) = self.known()?;
        Some(ClockSources { current: current.clone(), available: available.clone() })
    }
}

/// The most names, and the most characters of a name. Linux allows 31 characters, and a kernel has fewer than ten names.
const MOST: usize = 64;

/// Returns the names of the timecounters that FreeBSD's kernel can select, best first. It never selects one with a negative
/// quality.
pub fn selectable_timecounters(mut timecounters: Vec<(i64, String)>) -> Vec<String> {
    timecounters.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
    usable_names(timecounters.into_iter().filter(|(quality, _)| *quality >= 0).map(|(_, name)| name))
}

/// Returns the names that can be the name of a clock source. A kernel has fewer than ten.
fn usable_names(names: impl Iterator<Item = String>) -> Vec<String> {
    names.filter(|name| is_name(name)).take(MOST).collect()
}

/// Returns whether this can be the name of a clock source. Names appear in commands that users paste into a shell.
pub fn is_name(name: &str) -> bool {
    (1..=MOST).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c))
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

    #[test]
    fn the_length_and_the_number_of_names_are_limited() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::captured(root.path().into());
        std::fs::create_dir_all(host.file(CURRENT_CLOCKSOURCE).parent().unwrap()).unwrap();
        let long = "x".repeat(65_536);
        std::fs::write(host.file(CURRENT_CLOCKSOURCE), &long).unwrap();
        std::fs::write(host.file(AVAILABLE_CLOCKSOURCE), format!("{long} tsc {}", "hpet ".repeat(100_000))).unwrap();
        let clocksource = host.clocksource();
        assert!(clocksource.current.known().is_none());
        let available = clocksource.available.known().unwrap();
        assert_eq!((available[0].as_str(), available.len()), ("tsc", 64));
        let timecounters = [long, "tsc".into()].map(|name| (1000, name)).into_iter();
        let timecounters = selectable_timecounters(timecounters.chain(vec![(900, "hpet".into()); 100_000]).collect());
        assert_eq!((timecounters[0].as_str(), timecounters.len()), ("tsc", 64));
    }
}
