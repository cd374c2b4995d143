//! A server's life: made, started, and shut down when nobody needs it.

use super::installation::Installation;
use super::{PAUSE, PORT, SUPERUSER};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the server, or initdb, says.
const LOG: &str = "log";
/// What we hear once it can be reached.
pub const READY: &str = "ready\n";

/// Until the other end of the socket is closed, or the server is gone: then why, as far as it says so.
pub fn serve(socket: &UnixStream, installation: &Installation, folder: &Path) -> std::io::Result<String> {
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
