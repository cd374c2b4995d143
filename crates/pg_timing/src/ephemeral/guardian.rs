//! The process that makes a server, watches over it, and clears up behind it.

use super::SUPERUSER;
use super::installation::Installation;
use super::remains;
use super::user::User;
use crate::postgres::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The socket's folder is private, so the port need not differ.
pub const PORT: &str = "5432";
/// What the server, or initdb, says.
const LOG: &str = "log";

const PAUSE: Duration = Duration::from_millis(10);
/// initdb and a start take two seconds, and a busy or slow host takes some times as long.
const LIMIT: Duration = Duration::from_secs(120);

/// What it tells us: a line each.
const READY: &str = "ready\n";
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
        let why = match detach(user).and_then(|()| serve(&socket, installation, folder)) {
            Ok(why) => why,
            Err(error) => error.to_string(),
        };
        _ = writeln!(&socket, "{why}");
        end_orphans();
        remains::clear(folder);
        _ = (&socket).write_all(CLEAN.as_bytes());
    });
    // SAFETY: ends this process, without what the program would do at its exit.
    unsafe { libc::_exit(done.is_err().into()) }
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

/// Until the other end of the socket is closed, or the server is gone: then why, as far as it says so.
fn serve(socket: &UnixStream, installation: &Installation, folder: &Path) -> std::io::Result<String> {
    socket.set_nonblocking(true)?;
    let data = folder.join("data");
    // A full disk has no room for a log of that.
    let mut initdb = program(installation, "initdb", folder)?;
    initdb.args(["-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--no-sync", "-D"]).arg(&data);
    let mut initdb = initdb.stderr(Stdio::piped()).spawn()?;
    while initdb.try_wait()?.is_none() && !closed(socket) {
        std::thread::sleep(PAUSE);
    }
    if !initdb.try_wait()?.is_some_and(|status| status.success()) {
        return given_up(initdb);
    }
    let mut server = program(installation, "postgres", folder)?;
    server.arg("-D").arg(&data).arg("-k").arg(folder).args(["-p", PORT]);
    for setting in ["listen_addresses=", "fsync=off", "dynamic_shared_memory_type=mmap", "logging_collector=off"] {
        server.args(["-c", setting]);
    }
    let log = folder.join(LOG);
    let file = File::create(&log)?;
    let mut server = server.stdout(file.try_clone()?).stderr(file).spawn()?;
    let mut told = false;
    while !closed(socket) && server.try_wait()?.is_none() {
        if !told && ready(&data) {
            (&*socket).write_all(READY.as_bytes())?;
            told = true;
        }
        std::thread::sleep(PAUSE);
    }
    shut_down(&mut server)?;
    Ok(complaint(&std::fs::read_to_string(log).unwrap_or_default()))
}

/// What initdb complains of; it has ended, or is not wanted any more.
fn given_up(mut initdb: Child) -> std::io::Result<String> {
    initdb.kill()?;
    initdb.wait()?;
    let mut said = [0; 4096];
    // What it has started may still hold the other end: not to its end, then.
    let length = initdb.stderr.as_mut().map_or(Ok(0), |stderr| stderr.read(&mut said))?;
    Ok(complaint(&String::from_utf8_lossy(&said[..length])))
}

/// One of the server's programs, which ends if we do.
fn program(installation: &Installation, name: &str, folder: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(installation.bin.join(name));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env("LC_ALL", "C");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec, and nothing but a system call.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    Ok(command)
}

/// The eighth line of the lock file says so.
fn ready(data: &Path) -> bool {
    std::fs::read_to_string(data.join("postmaster.pid"))
        .is_ok_and(|lock| lock.lines().nth(7).is_some_and(|state| state.trim() == "ready"))
}

fn closed(mut socket: &UnixStream) -> bool {
    match socket.read(&mut [0; 16]) {
        Ok(n) => n == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// At once: there is nothing to keep.
fn shut_down(server: &mut Child) -> std::io::Result<()> {
    // SAFETY: our own child, which has not been waited for; it only sends a signal.
    unsafe { libc::kill(server.id() as libc::pid_t, libc::SIGQUIT) };
    let start = Instant::now();
    while server.try_wait()?.is_none() {
        // PostgreSQL itself gives its processes five seconds.
        if start.elapsed() > Duration::from_secs(10) {
            server.kill()?;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// What the server or initdb has left when it was killed. Left alone, initdb's server sees the end of
/// its input and ends in order; a backend would run to its statement's end.
fn end_orphans() {
    let start = Instant::now();
    loop {
        // SAFETY: no status is asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            -1 => return,
            0 => {}
            _ => continue,
        }
        let signal = match start.elapsed().as_secs() {
            0 => 0,
            1..=3 => libc::SIGTERM,
            4..=9 => libc::SIGKILL,
            _ => return,
        };
        for child in children() {
            // SAFETY: our own children, that nobody else waits for.
            unsafe { libc::kill(child, signal) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Of this process, as far as the system tells.
fn children() -> Vec<libc::pid_t> {
    let parent = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| {
            // Behind the name in brackets: the state, and the parent.
            std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(parent.as_str())
            })
        })
        .collect()
}

/// Why it failed: the first line that says so.
fn complaint(said: &str) -> String {
    const SERVER: [&str; 2] = ["FATAL:  ", "PANIC:  "];
    const INITDB: &str = "initdb: error: ";
    let why = |line: &str| {
        let start = SERVER.iter().find_map(|mark| Some(line.find(mark)? + mark.len()));
        start.or_else(|| line.starts_with(INITDB).then_some(0)).map(|start| line[start..].trim().to_string())
    };
    said.lines().find_map(why).unwrap_or_else(|| "it ended without a word".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints() {
        for (text, why) in [
            ("creating directory ... ok\n", "it ended without a word"),
            ("x\ninitdb: error: could not write\n", "initdb: error: could not write"),
            ("2026-11-21 UTC [1] LOG:  starting\n2026-11-21 UTC [1] FATAL:  no space\n", "no space"),
        ] {
            assert_eq!(complaint(text), why);
        }
    }
}
