//! `pg_timing clocksource`: lists the kernel's clock sources and switches to another one.
//!
//! This is the only part of the program that changes a host. It changes it through [`Setting`], so that tests can
//! switch a directory instead. [`Restore`] restores the old clock source, even after an error. A guardian
//! process restores it if this program is killed or stopped, or ends with a panic, which runs no destructors in a release build.

use crate::error::{Error, require};
use crate::guardian::GuardianProcess;
use crate::host::facts::{CURRENT_CLOCKSOURCE, Host};
use crate::host::measure::Budget;
use crate::human::reason;
use crate::report::*;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use timing_clock::Nanos;
use timing_clock::clocksource::is_tsc;

/// Lists a host's clock sources. `measure` measures the current one; it is called only for the host that we run on.
pub fn list(host: &Host, measure: impl FnOnce() -> ClockReport) -> Result<ClocksourceList, Error> {
    let clocksource = host.clocksource();
    let current = clocksource.current.get();
    let mut names = clocksource.available.known().cloned().unwrap_or_default();
    names.retain(|name| current != Ok(name));
    if names.is_empty() {
        current.map_err(unknown_clocksource)?;
    }
    let row = |name: &str, state| ClocksourceRow { name: name.into(), state, traits: traits_of(name) };
    let mut rows: Vec<ClocksourceRow> = current.iter().map(|name| row(name, ClocksourceState::Current)).collect();
    rows.extend(names.iter().map(|name| row(name, ClocksourceState::Available)));
    rows.extend(missing_tsc(host, &rows).map(|state| row("tsc", state)));
    let captured = |measured: &Report| measured.clocks.iter().find(|clock| clock.name == SYSTEM).cloned();
    let captured = || host.captured_json("measured").known().and_then(captured);
    let measured = if host.is_live() { Some(measure()) } else { captured() };
    Ok(ClocksourceList { rows, measured: measured.filter(|clock| clock.read_ns.is_some()), live: host.is_live() })
}

/// Returns why Linux does not offer the TSC of an x86 CPU. `None` if it does, or if the CPU has none.
fn missing_tsc(host: &Host, offered: &[ClocksourceRow]) -> Option<ClocksourceState> {
    let is_x86 = host.read("/proc/cpuinfo").known().is_some() && host.architecture() == Fact::Known("x86_64".into());
    if !is_x86 || offered.iter().any(|row| is_tsc(&row.name)) {
        return None;
    }
    let boot = host.boot_parameters();
    let mut words = boot.known().into_iter().flatten();
    match words.find(|word| ["notsc", "tsc=unstable"].contains(&word.as_str())) {
        Some(word) => Some(ClocksourceState::Forbidden(word.clone())),
        None if host.features().known()?.constant_rate() => Some(ClocksourceState::Rejected),
        None => Some(ClocksourceState::NotConstant),
    }
}

/// The kernel's clock source.
pub trait Setting {
    /// Reads the current and the available clock sources.
    fn read(&self) -> Clocksource;
    /// Checks the permission to write, and locks out other pg_timing processes.
    fn lock(&self) -> io::Result<Lock>;
    fn write(&self, name: &str) -> io::Result<()>;
}

/// The lock on a [`Setting`]. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just starting has it open, too.
        _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl Setting for Host {
    fn read(&self) -> Clocksource {
        self.clocksource()
    }

    fn lock(&self) -> io::Result<Lock> {
        let file = OpenOptions::new().write(true).open(self.file(CURRENT_CLOCKSOURCE))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK.into()),
            // If the file system has no locks, continue without.
            _ => Ok(Lock(file)),
        }
    }

    fn write(&self, name: &str) -> io::Result<()> {
        // Truncate because tests use plain files. Use one write, because the kernel takes each write as a name.
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.file(CURRENT_CLOCKSOURCE))?;
        file.write_all(format!("{name}\n").as_bytes())
    }
}

/// Returns the error for a failed [`Setting::lock`].
pub fn not_permitted(error: &io::Error, name: &str, is_root: bool) -> Error {
    let hint = match error.kind() {
        // Two processes at a time would restore each other's clock source.
        io::ErrorKind::WouldBlock => {
            let hint = "wait until it has restored the clock source";
            return Error::new("another pg_timing is switching the clock source", hint);
        }
        io::ErrorKind::PermissionDenied if !is_root => {
            format!("only root may switch the clock source: sudo pg_timing clocksource use {name}")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "a security module denies it, or a container, where /sys is read-only: run this on the host itself".into()
        }
        _ => format!("to switch by hand, as root: {}", System::Linux.switch_command(name)),
    };
    Error::new(format!("cannot write {CURRENT_CLOCKSOURCE}: {}", reason(error)), hint)
}

/// Returns the current clock source.
pub fn current(setting: &dyn Setting) -> Result<String, Error> {
    setting.read().current.get().cloned().map_err(unknown_clocksource)
}

/// Returns the error for a kernel that does not show its clock source.
fn unknown_clocksource(why: &str) -> Error {
    Error::new(
        format!("the kernel's clock source is unknown: {why}"),
        "this command needs Linux with sysfs mounted on /sys; pg_timing check works without it",
    )
}

/// Refuses a clock source that the kernel does not offer, or that can stall the host.
pub fn check_request(setting: &dyn Setting, name: &str, force: bool) -> Result<(), Error> {
    let Clocksource { available, .. } = setting.read();
    let available = available.get().map_err(unknown_clocksource)?;
    let what = format!("the kernel does not offer a clock source \"{}\"", name.escape_debug());
    let unstable = "; if the kernel marked the TSC unstable, only a restart makes it available again";
    let hint = format!("available: {}{}", available.join(" "), if name == "tsc" { unstable } else { "" });
    require(available.iter().any(|available| available == name), what, hint)?;
    let stalls = traits_of(name).filter(|traits| traits.can_stall() && !force);
    stalls.map_or(Ok(()), |traits| {
        Err(Error::new(format!("{name} can stall a large host: it is {}", traits.what), hint_to_force(name)))
    })
}

/// Returns a hint for a clock source that is refused.
pub fn hint_to_force(name: &str) -> String {
    format!("to try it for one second anyway: pg_timing clocksource use {name} --for 1 --force")
}

/// Writes the name and reads it back. Returns why it is not the clock source, if so.
///
/// The kernel reports no error for a name that it does not accept. It selects what it thinks best, which may not be the
/// old clock source.
fn set(setting: &dyn Setting, name: &str) -> Result<(), String> {
    let written = setting.write(name);
    match (setting.read().current, written) {
        (Fact::Known(current), _) if current == name => Ok(()),
        (_, Err(error)) => Err(reason(&error)),
        (Fact::Known(current), Ok(())) => Err(format!("the kernel uses {current} instead")),
        (Fact::Unavailable { unavailable }, Ok(())) => Err(unavailable),
    }
}

/// Restores `old` if the clock source is `expected`. Returns false if `old` was already current.
fn restore(setting: &dyn Setting, old: &str, expected: &str) -> Result<bool, Error> {
    let command = System::Linux.switch_command(old);
    match setting.read().current {
        Fact::Known(current) if current == old => Ok(false),
        Fact::Known(current) if current != expected => {
            let what = "another program or the kernel has changed it";
            let what = format!("the clock source was not restored to {old}: {what} to {current}");
            Err(Error::new(what, format!("to restore it anyway, as root: {command}")))
        }
        // If it can no longer be read, a write may still work.
        _ => set(setting, old).map(|()| true).map_err(|why| {
            let what = format!("THE CLOCK SOURCE COULD NOT BE RESTORED TO {old}: {why}");
            Error::new(what, format!("as root, type: {command}"))
        }),
    }
}

/// Restores the old clock source when it is dropped, unless it was disarmed. Create it before the first write.
pub struct Restore<'a> {
    setting: &'a dyn Setting,
    old: String,
    /// the clock source after our write; any other one was selected by someone else
    expected: String,
    armed: bool,
    guardian: Option<GuardianProcess>,
}

impl<'a> Restore<'a> {
    pub fn new(setting: &'a dyn Setting, old: &str, new: &str, guardian: Option<GuardianProcess>) -> Restore<'a> {
        Restore { setting, old: old.into(), expected: new.into(), armed: true, guardian }
    }

    /// Switches to the new clock source.
    pub fn switch(&mut self) -> Result<(), Error> {
        let name = self.expected.clone();
        set(self.setting, &name).map_err(|why| {
            if let Fact::Known(current) = self.setting.read().current {
                self.expected = current;
            }
            let hint = "the kernel log may show the reason: dmesg | grep -i clocksource";
            Error::new(format!("could not switch to {name}: {why}"), hint)
        })
    }

    /// Restores the old clock source now. Returns a message.
    pub fn now(mut self) -> Result<String, Error> {
        self.armed = false;
        restore(self.setting, &self.old, &self.expected)?;
        Ok(format!("The clock source is {} again.", self.old))
    }

    /// Keeps the new clock source.
    pub fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        let restored = if self.armed { restore(self.setting, &self.old, &self.expected) } else { Ok(false) };
        if let Some(mut process) = self.guardian.take() {
            // It fails only if the guardian was killed.
            _ = process.socket.write_all(b"dismissed");
            // If a signal has stopped it, nothing is left to restore.
            process.finish(DISMISSAL);
        }
        _ = match restored {
            // The write never happened, or the kernel refused it.
            Ok(false) => Ok(()),
            Ok(true) => writeln!(io::stderr(), "The clock source is {} again.", self.old),
            Err(Error { what, hint, .. }) => writeln!(io::stderr(), "pg_timing: error: {what}\nhint: {hint}"),
        };
    }
}

/// The program normally restores within this time after the trial. If it does not, it is stopped, and the guardian
/// restores.
const GRACE: Duration = Duration::from_secs(10);
/// Time limit for the end of the dismissed process. It takes milliseconds.
const DISMISSAL: Duration = Duration::from_secs(2);

/// Starts the guardian. If the program ends without dismissing it, or at the latest when the trial has ended, it restores
/// `old` if the clock source is `new`. It prints nothing: the program has printed the undo command. This program must
/// have no other thread.
pub fn start_guardian(setting: &dyn Setting, old: &str, new: &str, trial: Nanos) -> Result<GuardianProcess, Error> {
    let limit = Duration::from_secs_f64(trial.secs()) + GRACE;
    // The signals stay blocked: the process must not end before it can restore.
    let work = |socket| {
        if !is_dismissed(socket, limit) {
            _ = restore(setting, old, new);
        }
    };
    GuardianProcess::start(work).map_err(|error| {
        let what = format!("could not start the process that restores the clock source: {}", reason(&error));
        Error::new(what, format!("the clock source is still {old}; try again"))
    })
}

/// Waits until the program has ended, or for the limit. Returns whether the program has dismissed the guardian.
fn is_dismissed(mut socket: UnixStream, limit: Duration) -> bool {
    _ = socket.set_read_timeout(Some(limit));
    // SIGCONT after SIGSTOP interrupts a read, although all signals are blocked. `read_exact` then reads again.
    socket.read_exact(&mut [0]).is_ok()
}

/// The longest single wait in ms. A signal that arrives just before it starts goes unnoticed for this long.
const MAX_WAIT_MS: f64 = 20.0;

/// Waits until the budget is spent or its flag is set.
pub fn wait(budget: &Budget) {
    while budget.go_on() {
        let ms = (budget.left().0 / 1e6).ceil().clamp(1.0, MAX_WAIT_MS) as libc::c_int;
        // A signal ends poll(), but not the standard library's sleep. This matters on a clock source that stands still,
        // where timers stand still, too.
        // SAFETY: there are no descriptors, so poll() does not use the null pointer.
        unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_missing_permission_is_named() {
        let error = |code: i32, root| not_permitted(&io::Error::from_raw_os_error(code), "tsc", root);
        assert!(error(libc::EACCES, false).hint.contains("only root may"));
        for code in [libc::EACCES, libc::EPERM, libc::EROFS] {
            assert!(error(code, true).hint.contains("container"), "{code}");
        }
        assert!(error(libc::EISDIR, true).hint.contains("echo tsc > /sys"));
        assert_eq!(error(libc::EROFS, true).what, format!("cannot write {CURRENT_CLOCKSOURCE}: Read-only file system"));
    }

    #[test]
    fn only_one_process_can_hold_the_lock() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(CURRENT_CLOCKSOURCE.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "tsc\n").unwrap();
        let host = Host::captured(root.path().into());
        let first = host.lock().unwrap();
        assert!(not_permitted(&host.lock().unwrap_err(), "tsc", true).what.contains("another pg_timing"));
        // A child process that is just starting has the same files.
        let _child = first.0.try_clone().unwrap();
        drop(first);
        host.lock().unwrap();
    }

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

    #[test]
    fn a_wait_ends_when_time_is_up_or_the_flag_is_set() {
        let stop = AtomicBool::new(false);
        wait(&Budget::new(Nanos::from_millis(5.0), &stop));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        wait(&Budget::new(Nanos::from_secs(1e6), &stop));
    }
}
