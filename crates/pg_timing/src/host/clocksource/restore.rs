//! Restores the clock source: after the trial, after an error or a panic, and by another process if this program is killed
//! or stopped.

use super::Setting;
use crate::error::{Error, one_line};
use crate::guardian::GuardianProcess;
use crate::human::reason;
use crate::report::{Fact, System};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    Done,
    /// it was the old clock source already
    Already,
    /// another program or the kernel has selected this one meanwhile; it is left unchanged
    ChangedByOthers(String),
    Failed(String),
}

/// Restores `old` if the clock source is `expected`.
pub fn restore(setting: &dyn Setting, old: &str, expected: &str) -> Restored {
    match setting.read().current {
        Fact::Known(current) if current == old => return Restored::Already,
        Fact::Known(current) if current != expected => return Restored::ChangedByOthers(current),
        // If it can no longer be read, a write may still work.
        _ => {}
    }
    let written = setting.write(old);
    match (setting.read().current, written) {
        (Fact::Known(current), _) if current == old => Restored::Done,
        (_, Err(error)) => Restored::Failed(reason(&error)),
        (Fact::Known(current), Ok(())) => Restored::Failed(format!("the kernel still uses {current}")),
        (Fact::Unavailable { unavailable }, Ok(())) => Restored::Failed(unavailable),
    }
}

impl Restored {
    /// Returns a message, or an error with the command to type.
    pub fn message(&self, old: &str, system: System) -> Result<String, Error> {
        match self {
            Restored::Done => Ok(format!("The clock source is {old} again.")),
            Restored::Already => Ok(format!("The clock source is {old} already: someone else restored it.")),
            Restored::ChangedByOthers(current) => Err(Error::new(
                format!(
                    "the clock source was not restored to {old}: another program or the kernel has changed it to {current}"
                ),
                format!("to restore it anyway, as root: {}", system.switch_command(old)),
            )),
            Restored::Failed(why) => Err(Error::new(
                format!("THE CLOCK SOURCE COULD NOT BE RESTORED TO {old}: {why}"),
                format!("as root, type: {}", system.switch_command(old)),
            )),
        }
    }
}

/// Restores the old clock source when it is dropped, unless it was disarmed.
pub struct Restore<'a> {
    setting: &'a dyn Setting,
    old: String,
    /// the clock source after our write; any other one was selected by someone else
    expected: String,
    armed: bool,
    guardian: Guardian,
}

impl<'a> Restore<'a> {
    /// Returns an armed guard. Create it before the first write.
    pub fn armed(setting: &'a dyn Setting, old: &str, expected: &str, guardian: Guardian) -> Restore<'a> {
        Restore { setting, old: old.into(), expected: expected.into(), armed: true, guardian }
    }

    /// Sets the clock source that the kernel selected after our write.
    pub fn set_expected(&mut self, name: &str) {
        self.expected = name.into();
    }

    /// Restores the old clock source now.
    pub fn now(mut self) -> Restored {
        self.armed = false;
        let restored = restore(self.setting, &self.old, &self.expected);
        self.guardian.dismiss();
        restored
    }

    /// Keeps the new clock source.
    pub fn disarm(mut self) {
        self.armed = false;
        self.guardian.dismiss();
    }
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let restored = restore(self.setting, &self.old, &self.expected);
        self.guardian.dismiss();
        let mut stderr = io::stderr();
        _ = match restored {
            // The write never happened, or the kernel refused it.
            Restored::Already => Ok(()),
            restored => match restored.message(&self.old, self.setting.system()) {
                Ok(text) => writeln!(stderr, "{text}"),
                Err(Error { what, hint, .. }) => writeln!(stderr, "pg_timing: error: {what}\nhint: {hint}"),
            },
        };
    }
}

/// The program normally restores within this time after the trial. If it does not, it is stopped, and the guardian
/// restores.
const GRACE: Duration = Duration::from_secs(10);
/// The longest single wait. On a slow clock source, timers can be late.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time limit for the end of the dismissed process. It takes milliseconds.
const DISMISSAL: Duration = Duration::from_secs(2);

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
            if !is_dismissed(socket, trial + GRACE) {
                report(&restore(setting, old, expected), setting, old);
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

    /// Ends the process, because the clock source has been restored or is kept.
    pub fn dismiss(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It fails only if the guardian was killed.
            _ = process.socket.write_all(b"dismissed");
            // If a signal has stopped it, nothing is left to restore.
            process.finish(DISMISSAL);
        }
    }
}

/// Waits until the program has ended, or for the limit. Returns whether the program has dismissed the guardian.
fn is_dismissed(mut socket: UnixStream, limit: Duration) -> bool {
    let start = Instant::now();
    _ = socket.set_read_timeout(Some(INTERVAL));
    while start.elapsed() < limit {
        match socket.read(&mut [0; 16]) {
            Ok(bytes) => return bytes > 0,
            // SIGCONT after SIGSTOP interrupts the call, although all signals are blocked.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => return false,
        }
    }
    false
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

    #[test]
    fn the_guardian_restores_unless_it_is_dismissed() {
        let dismissed = |message: &[u8], is_open: bool| {
            let (mut socket, guardian_socket) = UnixStream::pair().unwrap();
            socket.write_all(message).unwrap();
            let _open = is_open.then_some(socket);
            is_dismissed(guardian_socket, Duration::from_millis(1))
        };
        assert!(!dismissed(b"", false), "the program was killed");
        assert!(!dismissed(b"", true), "the program was stopped");
        assert!(dismissed(b"dismissed", false) && dismissed(b"dismissed", true));
    }
}
