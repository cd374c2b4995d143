//! A temporary server, started from the installed binaries. It listens only on a socket in a private folder. It is
//! removed when this program ends, even if this program is killed.
//!
//! A guardian process owns the server. A socket connects it with this program: each side notices when the other one
//! dies, and then removes the server. If the guardian dies, the kernel sends a signal to the server.

mod cleanup;
mod folder;
mod guardian;
mod installation;
mod lock_file;
mod marker;
mod orphans;
mod processes;
mod removal_limit;
mod server;
mod stale;
mod user;

pub use installation::Installation;

use crate::error::Error;
use crate::server::connection::{Password, Target};
use guardian::Guardian;
use removal_limit::RemovalLimit;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use user::User;

/// The longest base path, in bytes. A socket's address has at most 107 bytes on Linux, and 103 on other systems.
const MAX_BASE: usize = 60;
const SUPERUSER: &str = "postgres";
/// The socket's folder is private, so all temporary servers can use the same port.
const PORT: &str = "5432";
/// Interval between checks.
const PAUSE: Duration = Duration::from_millis(10);

/// A running temporary server. Dropping it removes the server.
pub struct Ephemeral {
    installation: Installation,
    folder: PathBuf,
    owner: libc::uid_t,
    guardian: Guardian,
    not_removed: Vec<(PathBuf, String)>,
}

impl Ephemeral {
    /// Starts a server, which takes a few seconds. `stop` cancels that.
    pub fn start(stop: &AtomicBool) -> Result<Ephemeral, Error> {
        let user = User::for_server()?;
        let installation = Installation::newest(user.as_ref(), stop);
        let base = base(&std::env::temp_dir(), user.as_ref());
        let owner = owner(user.as_ref());
        let not_removed = stale::remove_stale(&base, owner, stop);
        if stop.load(Ordering::Relaxed) {
            return Err(Error::new("stopped", "the temporary server was not started yet"));
        }
        let installation = installation?;
        let folder = folder(&base);
        remove_server_variables();
        let guardian = Guardian::start(&installation, &folder, user.as_ref(), stop)?;
        Ok(Ephemeral { installation, folder, owner, guardian, not_removed })
    }

    /// Returns the installation of the server.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Returns the folders of earlier runs that could not be removed, with the reason.
    pub fn not_removed(&self) -> &[(PathBuf, String)] {
        &self.not_removed
    }

    /// Returns the connection options of the server.
    pub fn target(&self) -> Target {
        Target {
            host: Some(self.folder.display().to_string()),
            port: Some(PORT.into()),
            user: Some(SUPERUSER.into()),
            database: Some("postgres".into()),
            password: Password::Never,
        }
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        if !self.guardian.end() {
            _ = cleanup::remove(&self.folder, self.owner, &RemovalLimit::new(None));
        }
    }
}

/// Removes the PG* variables, because libpq would use them for missing options. PGOPTIONS does not select a server.
fn remove_server_variables() {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") && name != "PGOPTIONS" {
            // SAFETY: no other thread reads the environment now.
            unsafe { std::env::remove_var(name) };
        }
    }
}

/// Returns the user who owns the server's files and processes.
fn owner(user: Option<&User>) -> libc::uid_t {
    // SAFETY: it only returns a number.
    user.map_or_else(|| unsafe { libc::geteuid() }, |user| user.uid)
}

/// Returns the directory for the server's folder: the one that TMPDIR names, or /tmp.
fn base(given: &Path, user: Option<&User>) -> PathBuf {
    // The server does not run in this program's directory, so the path must be absolute. A server's process is found by
    // its working directory, which the kernel shows without symlinks.
    let resolved = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    // Another user may have no access to root's folder.
    let given = resolved(given).filter(|given| user.is_none() && given.as_os_str().len() <= MAX_BASE);
    given.or_else(|| resolved(Path::new("/tmp"))).unwrap_or_else(|| "/tmp".into())
}

/// Returns an unused name. The guardian creates the folder, so if this program ends before that, nothing remains.
fn folder(base: &Path) -> PathBuf {
    // The hasher of the standard library has a random seed.
    base.join(format!("{}{:016x}", stale::PREFIX, RandomState::new().build_hasher().finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_has_no_symlinks() {
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert_eq!(base(&link, None), dir.path().canonicalize().unwrap());
        assert_eq!(base(Path::new("/missing"), None), Path::new("/missing"), "for the message");
        let tmp = Path::new("/tmp").canonicalize().unwrap();
        assert_eq!(base(&dir.path().join("x".repeat(MAX_BASE)), None), tmp);
        assert_eq!(base(&link, Some(&User { uid: 1, gid: 1 })), tmp);
    }
}
