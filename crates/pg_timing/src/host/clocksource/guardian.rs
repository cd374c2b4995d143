//! The guardian: a process that restores the clock source if this program is killed or stopped.

use super::Setting;
use super::restored::{Restored, restore};
use crate::error::{Error, one_line};
use crate::guardian::GuardianProcess;
use crate::human::reason;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The program normally restores within this time after the trial. If it does not, it is stopped, and the guardian
/// restores.
const GRACE: Duration = Duration::from_secs(10);
/// The longest single wait. On a slow clock source, timers can be late.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time limit for the end of the dismissed process. It takes milliseconds.
const DISMISSAL: Duration = Duration::from_secs(2);

/// The program's message after it has restored or kept the clock source.
const DISMISSED: &str = "dismissed";

/// The program's handle of the guardian process. If the program ends without [`Guardian::dismiss`], the guardian
/// restores the clock source.
#[derive(Debug)]
pub struct Guardian {
    /// `None` without a process
    process: Option<GuardianProcess>,
}

impl Guardian {
    /// Starts the process. It restores `old` if the clock source is `expected`, at the latest when the trial has ended.
    /// This program must have no other thread.
    pub fn start(setting: &dyn Setting, old: &str, expected: &str, trial: Duration) -> Result<Guardian, Error> {
        // The signals stay blocked: the process must not end before it can restore.
        let work = |socket, _| {
            if let Some(expected) = wait(socket, expected, trial + GRACE) {
                report(&restore(setting, old, &expected), setting, old);
            }
        };
        // Messages go to stderr.
        match GuardianProcess::start(0..=1, work) {
            Ok(process) => Ok(Guardian { process: Some(process) }),
            Err(error) => {
                let what = format!("could not start the process that restores the clock source: {}", reason(&error));
                Err(Error::new(what, format!("the clock source is still {old}; try again")))
            }
        }
    }

    /// Returns a handle without a process, for tests with several threads.
    #[cfg(test)]
    pub fn absent() -> Guardian {
        Guardian { process: None }
    }

    /// Sets the clock source that the kernel selected after our write.
    pub fn set_expected(&mut self, name: &str) {
        self.send(name);
    }

    /// Ends the process, because the clock source has been restored or is kept.
    pub fn dismiss(&mut self) {
        self.send(DISMISSED);
        if let Some(process) = self.process.take() {
            // If a signal has stopped it, nothing is left to restore.
            process.finish(DISMISSAL);
        }
    }

    fn send(&mut self, line: &str) {
        if let Some(process) = &mut self.process {
            // It fails only if the guardian was killed.
            _ = writeln!(process.socket, "{line}");
        }
    }
}

/// Waits until the program has ended, or for the limit. Returns the expected clock source, or `None` if the program has
/// dismissed the guardian.
fn wait(mut socket: UnixStream, expected: &str, limit: Duration) -> Option<String> {
    let start = Instant::now();
    let mut messages = String::new();
    _ = socket.set_read_timeout(Some(INTERVAL));
    while start.elapsed() < limit {
        let mut part = [0; 256];
        match socket.read(&mut part) {
            Ok(0) => break,
            Ok(n) => messages += &String::from_utf8_lossy(&part[..n]),
            // SIGCONT after SIGSTOP interrupts the call, although all signals are blocked.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => break,
        }
        if messages.lines().any(|line| line == DISMISSED) {
            return None;
        }
    }
    Some(messages.lines().last().unwrap_or(expected).to_string())
}

/// Prints what happened, because the program can no longer do it.
fn report(restored: &Restored, setting: &dyn Setting, old: &str) {
    print(&match (restored, restored.message(old, setting.system())) {
        // The program was ended before its write.
        (Restored::Already, _) => return,
        (_, Ok(text)) => format!("pg_timing was killed or stopped. {text}\n"),
        (_, Err(Error { what, hint, .. })) => {
            format!("pg_timing: error: {}\nhint: {}\n", one_line(&what), one_line(&hint))
        }
    });
}

/// Prints a short text on stderr. If its reader does not read, nothing is printed, because this process must end.
fn print(text: &str) {
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry. The call does not wait.
    if unsafe { libc::poll(&mut stderr, 1, 0) } == 1 {
        _ = io::stderr().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(messages: &[&str], closed: bool) -> Option<String> {
        let (mut socket, guardian_socket) = UnixStream::pair().unwrap();
        messages.iter().for_each(|message| writeln!(socket, "{message}").unwrap());
        let _open = (!closed).then_some(socket);
        wait(guardian_socket, "hpet", Duration::from_millis(1))
    }

    #[test]
    fn it_restores_unless_it_is_dismissed() {
        assert_eq!(waited(&[], true).as_deref(), Some("hpet"), "the program was killed");
        assert_eq!(waited(&["acpi_pm"], true).as_deref(), Some("acpi_pm"), "the kernel selected another one");
        assert_eq!(waited(&[DISMISSED], true), None);
        assert_eq!(waited(&["acpi_pm", DISMISSED], true), None);
        assert_eq!(waited(&[], false).as_deref(), Some("hpet"), "the program was stopped");
    }
}
