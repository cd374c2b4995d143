//! The process that makes a server, watches over it, and clears up behind it.

use super::installation::Installation;
use super::orphans::end_orphans;
use super::remains;
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

/// initdb and a start take two seconds, and a busy or slow host takes some times as long.
const LIMIT: Duration = Duration::from_secs(120);

/// What it tells us in the end.
const CLEAN: &str = "clean\n";

/// Our side of it.
pub struct Guardian {
    process: libc::pid_t,
    socket: UnixStream,
}

impl Guardian {
    pub fn start(
        installation: &Installation,
        folder: &Path,
        user: Option<&User>,
        stop: &AtomicBool,
    ) -> Result<Guardian, Error> {
        let failed = |error: std::io::Error| {
            Error::new(format!("could not start a process: {}", crate::human::reason(&error)), "")
        };
        let (ours, its) = UnixStream::pair().map_err(failed)?;
        // SAFETY: there are no other threads, so the child may do all that a process may.
        let process = match unsafe { libc::fork() } {
            -1 => return Err(failed(std::io::Error::last_os_error())),
            0 => {
                drop(ours);
                watch(its, installation, folder, user)
            }
            process => process,
        };
        drop(its);
        let mut guardian = Guardian { process, socket: ours };
        match guardian.hear(Some(stop), LIMIT).as_str() {
            READY => Ok(guardian),
            said => {
                let why = said.lines().next().unwrap_or("it did not come up in time").to_string();
                if !guardian.end() {
                    remains::clear(folder);
                }
                Err(match stop.load(Ordering::Relaxed) {
                    true => Error::new("stopped", "the server that was being started is removed"),
                    false => Error::new(
                        format!("could not start a server of PostgreSQL {}: {why}", installation.version),
                        "it needs 60 MB in /tmp, or where TMPDIR says",
                    ),
                })
            }
        }
    }

    /// Has everything removed; false if the guardian is gone and has not done so.
    pub fn end(&mut self) -> bool {
        _ = self.socket.shutdown(std::net::Shutdown::Write);
        let clean = self.hear(None, LIMIT).ends_with(CLEAN);
        // SAFETY: our own child, whose status nobody needs.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
        clean
    }

    /// What it says next, or all until its end.
    fn hear(&mut self, stop: Option<&AtomicBool>, limit: Duration) -> String {
        let start = Instant::now();
        let mut said = Vec::new();
        _ = self.socket.set_read_timeout(Some(Duration::from_millis(50)));
        while start.elapsed() < limit && !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            let mut part = [0; 4096];
            match self.socket.read(&mut part) {
                Ok(0) => break,
                Ok(n) => said.extend(&part[..n]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                Err(_) => break,
            }
            if stop.is_some() && said.ends_with(b"\n") {
                break;
            }
        }
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// The guardian's whole life.
fn watch(socket: UnixStream, installation: &Installation, folder: &Path, user: Option<&User>) -> ! {
    // Nothing may return into the program that was copied.
    let done = std::panic::catch_unwind(move || {
        let made = make(folder, user);
        // What was there before is not ours.
        let ours = made.is_ok();
        let why = match made.and_then(|()| detach(user)).and_then(|()| serve(&socket, installation, folder)) {
            Ok(why) => why,
            Err(error) => error.to_string(),
        };
        _ = writeln!(&socket, "{why}");
        if ours {
            end_orphans();
            remains::clear(folder);
        }
        _ = (&socket).write_all(CLEAN.as_bytes());
    });
    // SAFETY: ends this process, without what the program would do at its exit.
    unsafe { libc::_exit(done.is_err().into()) }
}

/// Ours alone, or the server's user's.
fn make(folder: &Path, user: Option<&User>) -> std::io::Result<()> {
    let owned = DirBuilder::new().mode(0o700).create(folder).and_then(|()| {
        user.map_or(Ok(()), |user| chown(folder, Some(user.uid), Some(user.gid))).inspect_err(|_| {
            _ = std::fs::remove_dir(folder);
        })
    });
    owned.map_err(|error| {
        std::io::Error::other(format!("could not make {}: {}", folder.display(), crate::human::reason(&error)))
    })
}

/// Out of reach of the terminal's Ctrl-C, and as another user if need be.
fn detach(user: Option<&User>) -> std::io::Result<()> {
    // SAFETY: both only change this process.
    unsafe {
        libc::setsid();
        // What the postmaster leaves when it is killed becomes ours.
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    // Whoever reads our output is not to wait for us.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..=2 {
        // SAFETY: both are open.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&nothing), stream) };
    }
    user.map_or(Ok(()), User::become_it)
}
