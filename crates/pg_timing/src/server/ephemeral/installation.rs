//! Finds the installed PostgreSQL servers.

use super::{User, command_as};
use crate::error::Error;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// An installed PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// version, like `18.6`
    pub version: String,
    /// the folder with `initdb` and `postgres`
    pub bin: PathBuf,
}

/// The folders of packages, where `*` is a version: Debian and Ubuntu; PGDG for Red Hat; Red Hat, SUSE and Alpine;
/// built from source; Homebrew on both kinds of Mac; the installer for macOS; FreeBSD.
const USUAL_FOLDERS: [&str; 10] = [
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

/// Older versions have reached their end of life.
const MIN_MAJOR: u32 = 15;

impl Installation {
    /// Returns the newest server in PATH, in the folder that `pg_config` prints, and in the usual folders.
    ///
    /// The programs run as `user`, because a user other than root may own them.
    pub(super) fn newest(user: Option<&User>) -> Result<Installation, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
        let configured = path.iter().find_map(|folder| output(&folder.join("pg_config"), "--bindir", user));
        let usual = USUAL_FOLDERS.iter().flat_map(|pattern| matching(pattern));
        let mut found: Vec<Installation> = Vec::new();
        for bin in path.iter().cloned().chain(configured.map(PathBuf::from)).chain(usual) {
            // PATH often contains links to the programs in another folder.
            let Some(bin) = bin.join("postgres").canonicalize().ok().and_then(|it| Some(it.parent()?.to_path_buf()))
            else {
                continue;
            };
            if bin.join("initdb").exists() && !found.iter().any(|other| other.bin == bin) {
                found.extend(Installation::at(bin, user));
            }
        }
        // max_by_key() returns the last of equal versions, but the first one in PATH counts.
        found.reverse();
        found.into_iter().max_by_key(Installation::major).filter(|newest| newest.major() >= MIN_MAJOR).ok_or_else(|| {
            Error::new(
                "no PostgreSQL server (15 or later) is installed on this host",
                "install the package postgresql (Debian, Ubuntu) or postgresql-server (Red Hat, FreeBSD), or add the folder with initdb and postgres to PATH",
            )
        })
    }

    /// Returns the server in a folder.
    fn at(bin: PathBuf, user: Option<&User>) -> Option<Installation> {
        let version = version(&output(&bin.join("postgres"), "--version", user)?)?;
        Some(Installation { version, bin })
    }

    /// Returns the major version, or 0 if it is unknown.
    fn major(&self) -> u32 {
        let digits = self.version.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.version.len());
        self.version[..digits].parse().unwrap_or(0)
    }
}

/// Returns the version in `postgres (PostgreSQL) 18.6 (Debian 18.6-1)`.
fn version(text: &str) -> Option<String> {
    Some(text.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?.to_string())
}

/// Returns the output of a program with one option.
fn output(program: &Path, option: &str, user: Option<&User>) -> Option<String> {
    let done = command_as(user, program).arg(option).current_dir("/").stdout(Stdio::piped()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_string())
}

/// Returns the folders that match a pattern with at most one `*`.
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
    fn versions_are_parsed() {
        assert_eq!(version("postgres (PostgreSQL) 18.6 (Debian 18.6-1)").as_deref(), Some("18.6"));
        assert_eq!(version("postgres (EnterpriseDB) 16.1"), None);
        for (version, major) in [("18.6", 18), ("19rc1", 19), ("x", 0)] {
            assert_eq!(Installation { version: version.into(), bin: PathBuf::new() }.major(), major);
        }
    }

    #[test]
    fn a_star_matches_every_version() {
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
