//! The guardian: a process that creates a temporary server, monitors it, and removes it at the end.

use super::cleanup;
use super::installation::Installation;
use super::orphans::end_orphans;
use super::server::{READY, serve};
use super::user::User;
use crate::error::Error;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit for initdb and the start. They take two seconds, and several times as much on a slow host.
const LIMIT: Duration = Duration::from_secs(120);

/// The guardian's message after it has removed everything.
const CLEAN: &str = "clean\n";

/// The program's handle of the guardian process.
pub struct Guardian {
    process: libc::pid_t,
    socket: UnixStream,
}

impl Guardian {
    /// Starts the guardian, and waits until the server is ready.
    pub fn start(
        installation: &Installation,
        folder: &Path,
        user: Option<&User>,
        stop: &AtomicBool,
    ) -> Result<Guardian, Error> {
        let failed = |error: std::io::Error| {
            Error::new(format!("could not start a process: {}", crate::human::reason(&error)), "")
        };
        let (socket, guardian_socket) = UnixStream::pair().map_err(failed)?;
        // SAFETY: there are no other threads, so the child process has no restrictions.
        let process = match unsafe { libc::fork() } {
            -1 => return Err(failed(std::io::Error::last_os_error())),
            0 => {
                drop(socket);
                run(guardian_socket, installation, folder, user)
            }
            process => process,
        };
        drop(guardian_socket);
        let mut guardian = Guardian { process, socket };
        match guardian.read(Some(stop), LIMIT).as_str() {
            READY => Ok(guardian),
            message => {
                let why = message.lines().next().unwrap_or("it did not start in time").to_string();
                if !guardian.end() {
                    cleanup::remove(folder);
                }
                Err(match stop.load(Ordering::Relaxed) {
                    true => Error::new("stopped", "the temporary server was removed"),
                    false => Error::new(
                        format!("could not start a temporary server (PostgreSQL {}): {why}", installation.version),
                        "it needs 60 MB in /tmp, or in the directory that TMPDIR names",
                    ),
                })
            }
        }
    }

    /// Requests that the guardian removes everything. Returns false if the guardian died before it could.
    pub fn end(&mut self) -> bool {
        _ = self.socket.shutdown(std::net::Shutdown::Write);
        let clean = self.read(None, LIMIT).ends_with(CLEAN);
        // SAFETY: a child of this process. Its status is not needed.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
        clean
    }

    /// Returns the guardian's next message, or without `stop` all messages until its end.
    fn read(&mut self, stop: Option<&AtomicBool>, limit: Duration) -> String {
        let start = Instant::now();
        let mut message = Vec::new();
        _ = self.socket.set_read_timeout(Some(Duration::from_millis(50)));
        while start.elapsed() < limit && !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            let mut part = [0; 4096];
            match self.socket.read(&mut part) {
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

/// The guardian process, from its start to its end.
fn run(socket: UnixStream, installation: &Installation, folder: &Path, user: Option<&User>) -> ! {
    // The forked process must never return into the program's code.
    let done = std::panic::catch_unwind(move || {
        let created = create_folder(folder, user);
        // A folder that already existed must not be removed.
        let is_own = created.is_ok();
        let why = match created.and_then(|()| detach(user)).and_then(|()| serve(&socket, installation, folder)) {
            Ok(why) => why,
            Err(error) => error.to_string(),
        };
        _ = writeln!(&socket, "{why}");
        if is_own {
            end_orphans();
            cleanup::remove(folder);
        }
        _ = (&socket).write_all(CLEAN.as_bytes());
    });
    // SAFETY: ends this process without the program's exit handlers.
    unsafe { libc::_exit(done.is_err().into()) }
}

/// Creates the folder, which only its owner can access. The owner is the server's user.
fn create_folder(folder: &Path, user: Option<&User>) -> std::io::Result<()> {
    let owned = DirBuilder::new().mode(0o700).create(folder).and_then(|()| {
        user.map_or(Ok(()), |user| chown(folder, Some(user.uid), Some(user.gid))).inspect_err(|_| {
            _ = std::fs::remove_dir(folder);
        })
    });
    owned.map_err(|error| {
        std::io::Error::other(format!("could not create {}: {}", folder.display(), crate::human::reason(&error)))
    })
}

/// Detaches the process from the terminal, so that Ctrl-C does not reach it, and changes the user if necessary.
fn detach(user: Option<&User>) -> std::io::Result<()> {
    // SAFETY: both calls change only this process.
    unsafe {
        libc::setsid();
        // If the postmaster is killed, its child processes become children of this process.
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    // A program that reads the output must not wait for this process.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..=2 {
        // SAFETY: both file descriptors are open.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&nothing), stream) };
    }
    user.map_or(Ok(()), User::apply)
}
