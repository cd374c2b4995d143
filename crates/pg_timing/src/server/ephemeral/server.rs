//! Creates, starts and shuts down a server. Runs in the guardian.

use super::installation::Installation;
use super::{PAUSE, PORT, SUPERUSER};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// File name of the server's log.
const LOG: &str = "log";
/// The guardian's message when the server accepts connections.
pub const READY: &str = "ready\n";

/// Runs the server until the program closes its end of the socket, or until the server ends. Returns the server's error
/// message.
pub fn serve(socket: &UnixStream, installation: &Installation, folder: &Path) -> std::io::Result<String> {
    socket.set_nonblocking(true)?;
    let data = folder.join("data");
    // initdb's messages are read from a pipe, because a full disk has no space for a log.
    let mut initdb = program(installation, "initdb", folder)?;
    initdb.args(["-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--no-sync", "-D"]).arg(&data);
    let mut initdb = initdb.stderr(Stdio::piped()).spawn()?;
    while initdb.try_wait()?.is_none() && !is_closed(socket) {
        std::thread::sleep(PAUSE);
    }
    if !initdb.try_wait()?.is_some_and(|status| status.success()) {
        return initdb_error(initdb);
    }
    let mut server = program(installation, "postgres", folder)?;
    server.arg("-D").arg(&data).arg("-k").arg(folder).args(["-p", PORT]);
    for setting in ["listen_addresses=", "fsync=off", "dynamic_shared_memory_type=mmap", "logging_collector=off"] {
        server.args(["-c", setting]);
    }
    let log = folder.join(LOG);
    let file = File::create(&log)?;
    let mut server = server.stdout(file.try_clone()?).stderr(file).spawn()?;
    let mut reported = false;
    while !is_closed(socket) && server.try_wait()?.is_none() {
        if !reported && is_ready(&data) {
            (&*socket).write_all(READY.as_bytes())?;
            reported = true;
        }
        std::thread::sleep(PAUSE);
    }
    shut_down(&mut server)?;
    Ok(error_message(&std::fs::read_to_string(log).unwrap_or_default()))
}

/// Ends initdb and returns its error message.
fn initdb_error(mut initdb: Child) -> std::io::Result<String> {
    initdb.kill()?;
    initdb.wait()?;
    let mut text = [0; 4096];
    // A process that initdb started may still have the pipe open, so this is only one read.
    let length = initdb.stderr.as_mut().map_or(Ok(0), |stderr| stderr.read(&mut text))?;
    Ok(error_message(&String::from_utf8_lossy(&text[..length])))
}

/// Returns the command of a server program. The kernel ends the program when the guardian ends.
fn program(installation: &Installation, name: &str, folder: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(installation.bin.join(name));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env("LC_ALL", "C");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the closure only makes a system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    Ok(command)
}

/// Returns whether the server accepts connections, which the eighth line of the lock file shows.
fn is_ready(data: &Path) -> bool {
    std::fs::read_to_string(data.join("postmaster.pid"))
        .is_ok_and(|lock| lock.lines().nth(7).is_some_and(|state| state.trim() == "ready"))
}

/// Returns whether the other end of the socket is closed.
fn is_closed(mut socket: &UnixStream) -> bool {
    match socket.read(&mut [0; 16]) {
        Ok(n) => n == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// Shuts the server down at once, because its data is not needed.
fn shut_down(server: &mut Child) -> std::io::Result<()> {
    // SAFETY: a child of this process, which has not been waited for. The call only sends a signal.
    unsafe { libc::kill(server.id() as libc::pid_t, libc::SIGQUIT) };
    let start = Instant::now();
    while server.try_wait()?.is_none() {
        // PostgreSQL waits five seconds for its own processes.
        if start.elapsed() > Duration::from_secs(10) {
            server.kill()?;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Returns the first error message in the text.
fn error_message(text: &str) -> String {
    const SERVER: [&str; 2] = ["FATAL:  ", "PANIC:  "];
    const INITDB: &str = "initdb: error: ";
    let why = |line: &str| {
        let start = SERVER.iter().find_map(|mark| Some(line.find(mark)? + mark.len()));
        start.or_else(|| line.starts_with(INITDB).then_some(0)).map(|start| line[start..].trim().to_string())
    };
    text.lines().find_map(why).unwrap_or_else(|| "it ended without an error message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_message_is_found() {
        for (text, why) in [
            ("creating directory ... ok\n", "it ended without an error message"),
            ("x\ninitdb: error: could not write\n", "initdb: error: could not write"),
            ("2026-11-21 UTC [1] LOG:  starting\n2026-11-21 UTC [1] FATAL:  no space\n", "no space"),
        ] {
            assert_eq!(error_message(text), why);
        }
    }
}
