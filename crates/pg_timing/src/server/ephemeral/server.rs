//! Creates, starts and shuts down a server. Runs in the guardian.

use super::installation::Installation;
use super::{PAUSE, PORT, SUPERUSER};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
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
    initdb.args(["-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--no-sync"]);
    // If initdb fails, its data directory shows which shared memory must be removed.
    initdb.arg("--no-clean").arg("-D").arg(&data);
    let mut initdb = initdb.stderr(Stdio::piped()).spawn()?;
    let mut messages = Messages::of(initdb.stderr.take())?;
    while initdb.try_wait()?.is_none() && !is_closed(socket) {
        messages.read();
        std::thread::sleep(PAUSE);
    }
    if !initdb.try_wait()?.is_some_and(|status| status.success()) {
        initdb.kill()?;
        initdb.wait()?;
        messages.read();
        return Ok(error_message(&messages.text()));
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
    Ok(error_message(&end_of(&log)))
}

/// An error message is at the end of a log, and it is much shorter than this.
const MAX_BYTES: usize = 64 << 10;

/// Returns the last part of a file. A statement can fill a log with gigabytes.
fn end_of(log: &Path) -> String {
    let mut end = Vec::new();
    // Without a log there is no message.
    _ = File::open(log).and_then(|mut log| {
        let start = log.metadata()?.len().saturating_sub(MAX_BYTES as u64);
        log.seek(SeekFrom::Start(start))?;
        log.take(MAX_BYTES as u64).read_to_end(&mut end)
    });
    String::from_utf8_lossy(&end).into_owned()
}

/// Reads a program's messages while it runs. A full pipe would stop the program.
struct Messages {
    pipe: Option<ChildStderr>,
    /// the last part of the messages
    bytes: Vec<u8>,
}

impl Messages {
    fn of(pipe: Option<ChildStderr>) -> std::io::Result<Messages> {
        if let Some(pipe) = &pipe {
            // A process that the program started may keep the pipe open, so a read must not wait for its end.
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Messages { pipe, bytes: Vec::new() })
    }

    /// Reads what has arrived.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        // Reads at most what a pipe can hold, because the program can write faster than this process reads.
        // An error means that no more has arrived yet. What was read before it is in `bytes`.
        _ = pipe.take(MAX_BYTES as u64).read_to_end(&mut self.bytes);
        let surplus = self.bytes.len().saturating_sub(MAX_BYTES);
        self.bytes.drain(..surplus);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
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

/// Shuts the server down at once (SIGQUIT), because its data is not needed.
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

    /// A program that writes more than a pipe can hold.
    #[test]
    fn long_messages_do_not_stop_a_program() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'initdb: error: last' >&2"]);
        let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = Messages::of(program.stderr.take()).unwrap();
        let start = Instant::now();
        while program.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "the program waits for the pipe");
            messages.read();
        }
        messages.read();
        assert_eq!(error_message(&messages.text()), "initdb: error: last");
        assert!(messages.bytes.len() <= MAX_BYTES);
    }

    /// A program that never ends its messages.
    #[test]
    fn one_read_of_messages_is_limited() {
        let mut program = Command::new("sh").args(["-c", "yes >&2"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = Messages::of(program.stderr.take()).unwrap();
        for _ in 0..3 {
            messages.read();
            assert!(messages.bytes.capacity() <= 4 * MAX_BYTES, "{}", messages.bytes.capacity());
        }
        // The program ends when it writes to the closed pipe.
        drop(messages);
        program.wait().unwrap();
    }

    #[test]
    fn only_the_end_of_a_long_log_is_read() {
        let log = tempfile::NamedTempFile::new().unwrap();
        // The file has a hole, so it takes no space.
        log.as_file().set_len(1 << 40).unwrap();
        log.as_file().seek(SeekFrom::End(0)).unwrap();
        log.as_file().write_all(b"\nFATAL:  last\n").unwrap();
        let end = end_of(log.path());
        assert_eq!((end.len(), error_message(&end).as_str()), (MAX_BYTES, "last"));
        assert_eq!(end_of(Path::new("/missing")), "");
    }

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
