//! A server of our own, for whoever has none at hand: made out of the binaries that are installed,
//! reached by a private socket, and gone without a trace when we are, however we end.
//!
//! A guardian process holds the server. It hears of our end by the end of a socket, and we of its
//! own: whoever is left clears up. The server itself gets a signal when the guardian dies.

mod guardian;
mod installation;
mod orphans;
mod remains;
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

/// Linux takes 107 bytes as a socket's address, others 103.
const LONGEST_BASE: usize = 60;
const SUPERUSER: &str = "postgres";
/// The socket's folder is private, so the port need not differ.
const PORT: &str = "5432";
/// Between two looks at whether something has happened.
const PAUSE: Duration = Duration::from_millis(10);

pub struct Ephemeral {
    installation: Installation,
    folder: PathBuf,
    guardian: Guardian,
}

impl Ephemeral {
    /// Starts it, in a few seconds; `stop` ends that early.
    pub fn start(stop: &AtomicBool) -> Result<Ephemeral, Error> {
        let user = User::for_server()?;
        let installation = Installation::newest()?;
        let folder = folder(user.as_ref());
        forget_other_servers();
        let guardian = Guardian::start(&installation, &folder, user.as_ref(), stop)?;
        Ok(Ephemeral { installation, folder, guardian })
    }

    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// How to reach it.
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
            remains::clear(&self.folder);
        }
    }
}

/// libpq takes from the environment what it is not told. PGOPTIONS says nothing of the way to a
/// server.
fn forget_other_servers() {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") && name != "PGOPTIONS" {
            // SAFETY: there are no other threads that could read it now.
            unsafe { std::env::remove_var(name) };
        }
    }
}

/// A name that nobody has. The guardian makes the folder: whoever ends before there is one leaves nothing.
fn folder(user: Option<&User>) -> PathBuf {
    let given = std::env::temp_dir();
    // Another user may have no way to a folder of root's.
    let base = if user.is_some() || given.as_os_str().len() > LONGEST_BASE { PathBuf::from("/tmp") } else { given };
    // The standard library's hash maps begin at random.
    base.join(format!("pg_timing.{:016x}", RandomState::new().build_hasher().finish()))
}
