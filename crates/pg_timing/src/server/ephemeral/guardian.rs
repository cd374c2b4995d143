//! The guardian: a process that creates a temporary server, monitors it, and removes it at the end.

use super::cleanup;
use super::installation::Installation;
use super::marker;
use super::orphans::end_orphans;
use super::removal_limit::RemovalLimit;
use super::server::{READY, serve};
use super::user::User;
use crate::error::Error;
use crate::guardian::GuardianProcess;
use crate::human::reason;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit for initdb and the start. They take two seconds, and several times as much on a slow host.
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit for the end of the process after its last message.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The guardian's message after it has removed everything.
const CLEAN: &str = "clean\n";

/// The program's handle of the guardian process.
pub struct Guardian {
    process: GuardianProcess,
}

impl Guardian {
    /// Starts the guardian, and waits until the server is ready.
    pub fn start(
        installation: &Installation,
        folder: &Path,
        user: Option<&User>,
        stop: &AtomicBool,
    ) -> Result<Guardian, Error> {
        let start = Instant::now();
        let process = GuardianProcess::start(0..=2, |socket, signals| {
            signals.restore();
            run(&socket, installation, folder, user);
        });
        let process = process.map_err(|error| {
            let what = format!("could not start the process that monitors the temporary server: {}", reason(&error));
            Error::new(what, "try again, or give the connection options of a running server")
        })?;
        let mut guardian = Guardian { process };
        let message = guardian.read(Some(stop), LIMIT);
        if message == READY {
            return Ok(guardian);
        }
        let why = message.lines().next().unwrap_or(match start.elapsed() < LIMIT {
            true => "the process that monitors it was killed",
            false => "it did not start in time",
        });
        if !guardian.end() {
            _ = cleanup::remove(folder, super::owner(user), &RemovalLimit::new(None));
        }
        Err(match stop.load(Ordering::Relaxed) {
            true => Error::new("stopped", "the temporary server was removed"),
            false => Error::new(
                format!("could not start a temporary server (PostgreSQL {}): {why}", installation.version),
                hint(why),
            ),
        })
    }

    /// Asks the guardian to remove everything. Returns false if it could not do that, or if it died before.
    pub fn end(&mut self) -> bool {
        _ = self.process.socket.shutdown(std::net::Shutdown::Write);
        let clean = self.read(None, LIMIT).ends_with(CLEAN);
        self.process.finish(END_LIMIT);
        clean
    }

    /// Returns the guardian's next message. Without `stop`, returns all messages until the guardian ends.
    fn read(&mut self, stop: Option<&AtomicBool>, limit: Duration) -> String {
        let start = Instant::now();
        let mut message = Vec::new();
        _ = self.process.socket.set_read_timeout(Some(Duration::from_millis(50)));
        while start.elapsed() < limit && !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            let mut part = [0; 4096];
            match self.process.socket.read(&mut part) {
                Ok(0) => break,
                Ok(n) => message.extend(&part[..n]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                Err(_) => break,
            }
            if stop.is_some() && message.ends_with(b"\n") {
                break;
            }
        }
        String::from_utf8_lossy(&message).into_owned()
    }
}

/// Returns a hint for the user.
fn hint(why: &str) -> &'static str {
    if ["No space left", "Disk quota exceeded"].iter().any(|full| why.contains(full)) {
        "a temporary server needs 60 MB: free space in /tmp, or set TMPDIR to another directory"
    } else if why.starts_with(NOT_CREATED) {
        "check the directory that TMPDIR names, or /tmp: you must have the permission to write there"
    } else {
        "try again, or give the connection options of a running server"
    }
}

/// The work of the guardian process.
fn run(socket: &UnixStream, installation: &Installation, folder: &Path, user: Option<&User>) {
    let created = detach(user).and_then(|()| create_folder(folder));
    // A folder that already existed must not be removed.
    let is_own = created.is_ok();
    // The lock lasts until the folder is removed.
    let marked = created.and_then(|()| marker::mark(folder).map_err(|error| not_created(folder, &error)));
    let why = match &marked {
        Ok(_lock) => serve(socket, installation, folder).unwrap_or_else(|error| reason(&error)),
        Err(error) => reason(error),
    };
    _ = writeln!(&*socket, "{why}");
    let is_clean = !is_own || {
        end_orphans();
        cleanup::remove(folder, super::owner(user), &RemovalLimit::new(None)).is_ok()
    };
    if is_clean {
        _ = (&*socket).write_all(CLEAN.as_bytes());
    }
}

/// Creates the folder, which only its owner can access.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder).map_err(|error| not_created(folder, &error))
}

const NOT_CREATED: &str = "could not create ";

fn not_created(folder: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::other(format!("{NOT_CREATED}{}: {}", folder.display(), reason(error)))
}

/// Becomes the parent of the server's orphans, and changes the user if necessary.
fn detach(user: Option<&User>) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: the call changes only this process. If the postmaster is killed, its child processes become children of
    // this process.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    user.map_or(Ok(()), User::apply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_fits_the_reason() {
        assert!(hint("initdb: error: could not write: No space left on device").contains("60 MB"));
        let missing = not_created(Path::new("/missing/x"), &std::io::ErrorKind::NotFound.into());
        assert!(hint(&missing.to_string()).contains("TMPDIR"));
        assert!(!hint("the process that monitors it was killed").contains("TMPDIR"));
    }
}
