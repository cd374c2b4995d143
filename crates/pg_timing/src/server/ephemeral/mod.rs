//! A temporary server, started from the installed binaries. It listens only on a socket in a private folder. It is removed
//! when this program ends, also if this program is killed.
//!
//! A guardian process owns the server. A socket connects it with this program: each side notices when the other one dies,
//! and then removes the server. If the guardian dies, the kernel sends a signal to the server.

mod cleanup;
mod guardian;
mod installation;
mod orphans;
mod server;
mod user;

pub use installation::Installation;

use crate::error::Error;
use crate::server::connection::{Password, Target};
use guardian::Guardian;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
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
    guardian: Guardian,
}

impl Ephemeral {
    /// Starts a server, which takes a few seconds. `stop` cancels that.
    pub fn start(stop: &AtomicBool) -> Result<Ephemeral, Error> {
        let user = User::for_server()?;
        let installation = Installation::newest()?;
        let folder = folder(user.as_ref());
        remove_server_variables();
        let guardian = Guardian::start(&installation, &folder, user.as_ref(), stop)?;
        Ok(Ephemeral { installation, folder, guardian })
    }

    /// Returns the installation of the server.
    pub fn installation(&self) -> &Installation {
        &self.installation
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
            cleanup::remove(&self.folder);
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

/// Returns an unused name. The guardian creates the folder, so if this program ends before that, nothing remains.
fn folder(user: Option<&User>) -> PathBuf {
    let given = std::env::temp_dir();
    // Another user may not have access to root's folder.
    let base = if user.is_some() || given.as_os_str().len() > MAX_BASE { PathBuf::from("/tmp") } else { given };
    // The hasher of the standard library has a random seed.
    base.join(format!("pg_timing.{:016x}", RandomState::new().build_hasher().finish()))
}
