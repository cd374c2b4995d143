//! The binaries of a server, where they may be.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// like `18.6`
    pub version: String,
    /// where `initdb` and `postgres` are
    pub bin: PathBuf,
}

/// Where packages put them; `*` is a version. Debian and Ubuntu; PGDG's for Red Hat; Red Hat, SUSE
/// and Alpine; built from source; Homebrew on both kinds of Mac; the installer for macOS; FreeBSD.
const USUAL: [&str; 10] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Library/PostgreSQL/*/bin",
    "/usr/local/bin",
    "/usr/bin",
];

/// Older ones are past their end of life.
const OLDEST: u32 = 15;

impl Installation {
    /// Of PATH, what `pg_config` in it says, and the usual places.
    pub fn newest() -> Result<Installation, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
        let told = path.iter().find_map(|folder| said(&folder.join("pg_config"), "--bindir"));
        let usual = USUAL.iter().flat_map(|pattern| matching(pattern));
        let mut found: Vec<Installation> = Vec::new();
        for bin in path.iter().cloned().chain(told.map(PathBuf::from)).chain(usual) {
            // PATH often has links to one that is found in its own place, too.
            let Some(bin) = bin.join("postgres").canonicalize().ok().and_then(|it| Some(it.parent()?.to_path_buf()))
            else {
                continue;
            };
            if bin.join("initdb").exists() && !found.iter().any(|other| other.bin == bin) {
                found.extend(Installation::at(bin));
            }
        }
        // The first of those that are equally new.
        found.reverse();
        found.into_iter().max_by_key(Installation::major).filter(|newest| newest.major() >= OLDEST).ok_or_else(|| {
            Error::new(
                "there is no PostgreSQL server's program (15 or later) on this host to start one with",
                "it comes with the package postgresql (Debian, Ubuntu) or postgresql-server (Red Hat, FreeBSD); PATH may name the folder with initdb and postgres",
            )
        })
    }

    fn at(bin: PathBuf) -> Option<Installation> {
        let version = version(&said(&bin.join("postgres"), "--version")?)?;
        Some(Installation { version, bin })
    }

    fn major(&self) -> u32 {
        let digits = self.version.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.version.len());
        self.version[..digits].parse().unwrap_or(0)
    }
}

/// Out of `postgres (PostgreSQL) 18.6 (Debian 18.6-1)`.
fn version(said: &str) -> Option<String> {
    Some(said.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?.to_string())
}

/// What a program answers to one option.
fn said(program: &Path, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// The folders that a pattern with one `*`, or none, stands for.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![pattern.into()] };
    let (folder, prefix) = before.rsplit_once('/').expect("patterns are absolute");
    let entries = std::fs::read_dir(if folder.is_empty() { "/" } else { folder }).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join(after.trim_start_matches('/')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("postgres (PostgreSQL) 18.6 (Debian 18.6-1)").as_deref(), Some("18.6"));
        assert_eq!(version("postgres (EnterpriseDB) 16.1"), None);
        for (version, major) in [("18.6", 18), ("19rc1", 19), ("x", 0)] {
            assert_eq!(Installation { version: version.into(), bin: PathBuf::new() }.major(), major);
        }
    }

    #[test]
    fn one_star_stands_for_any_version() {
        let root = tempfile::tempdir().unwrap();
        for version in ["pgsql-15", "pgsql-18", "other"] {
            std::fs::create_dir_all(root.path().join(version)).unwrap();
        }
        let mut found = matching(&format!("{}/pgsql-*/bin", root.path().display()));
        found.sort();
        assert_eq!(found, ["pgsql-15/bin", "pgsql-18/bin"].map(|bin| root.path().join(bin)));
        assert_eq!(matching("/usr/bin"), [Path::new("/usr/bin")]);
    }
}
