//! Signals to the program and to its guardian. They switch clock sources in a directory that replaces the kernel's.

use super::{TIMEOUT, clocksource};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A program that switches clock sources in a directory of its own, which it sees instead of the kernel's.
struct InDirectory {
    child: Child,
    current: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl InDirectory {
    const OLD: &str = "tsc";
    const NEW: &str = "kvm-clock";

    /// Starts the program. Returns an error if this process may not mount.
    fn start(seconds: &str) -> std::io::Result<InDirectory> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("available_clocksource"), "tsc kvm-clock \n").unwrap();
        let current = directory.path().join("current_clocksource");
        std::fs::write(&current, format!("{}\n", InDirectory::OLD)).unwrap();
        let mut command = clocksource(&["use", InDirectory::NEW, "--for", seconds, "--force"]);
        let path = std::ffi::CString::new(directory.path().to_str().unwrap()).unwrap();
        // SAFETY: only system calls between fork and exec.
        unsafe { command.pre_exec(move || mount_clock_sources(&path)) };
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(InDirectory { child, current, _directory: directory })
    }

    /// Waits until this is the clock source, and sends the signal meanwhile. Signal 0 has no effect. Rust's handler of
    /// SIGSEGV and SIGBUS ignores the first signal of another process, so each signal is repeated.
    fn send_until(&self, signal: libc::c_int, name: &str) {
        let start = Instant::now();
        while std::fs::read_to_string(&self.current).unwrap().trim() != name {
            assert!(start.elapsed() < 2 * TIMEOUT, "signal {signal}: the clock source is not {name}");
            // SAFETY: sends a signal to a child that was not waited for.
            unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the process id of the guardian, after the switch.
    fn guardian(&self) -> libc::pid_t {
        self.send_until(0, InDirectory::NEW);
        let program = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{program}/task/{program}/children")).unwrap();
        children.trim().parse().unwrap()
    }
}

impl Drop for InDirectory {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Enters a mount namespace in which the directory replaces the kernel's clock sources, with the default effect of all
/// signals.
fn mount_clock_sources(directory: &std::ffi::CStr) -> std::io::Result<()> {
    let check = |status| if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    let place = c"/sys/devices/system/clocksource/clocksource0".as_ptr();
    let (root, none) = (c"/".as_ptr(), std::ptr::null());
    // SAFETY: plain system calls. The directory's name outlives them.
    unsafe {
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        check(libc::unshare(libc::CLONE_NEWNS))?;
        check(libc::mount(c"none".as_ptr(), root, none, libc::MS_REC | libc::MS_PRIVATE, none.cast()))?;
        check(libc::mount(directory.as_ptr(), place, none, libc::MS_BIND, none.cast()))
    }
}

/// Every signal that ends or stops a program arrives after the switch. These programs run at the same time.
#[test]
fn every_signal_restores() {
    const STOP: [libc::c_int; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    /// These have no effect on a program by default. Rust ignores SIGPIPE.
    const IGNORED: [libc::c_int; 5] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH, libc::SIGPIPE];
    // The guardian of a stopped program waits until the end of the trial.
    let start = |signal| InDirectory::start(if STOP.contains(&signal) { "1" } else { "600" });
    let signals = (1..32).filter(|signal| !IGNORED.contains(signal));
    let programs: Vec<_> = match signals.map(|signal| Ok((signal, start(signal)?))).collect() {
        Ok(programs) => programs,
        Err(error) if std::io::Error::kind(&error) == std::io::ErrorKind::PermissionDenied => {
            return eprintln!("SKIPPED: this process may not mount a directory");
        }
        Err(error) => panic!("{error}"),
    };
    programs.iter().for_each(|(_, program)| program.send_until(0, InDirectory::NEW));
    programs.iter().for_each(|(signal, program)| program.send_until(*signal, InDirectory::OLD));
}

/// SIGCONT after SIGSTOP ends a system call of a process. The guardian continues to wait.
#[test]
fn guardian_that_was_stopped_for_a_while_does_not_restore() {
    let program = match InDirectory::start("600") {
        Ok(program) => program,
        Err(error) => return eprintln!("SKIPPED: this process may not mount a directory: {error}"),
    };
    let guardian = program.guardian();
    for signal in [libc::SIGSTOP, libc::SIGCONT] {
        // SAFETY: the guardian of this test's program.
        unsafe { libc::kill(guardian, signal) };
        thread::sleep(Duration::from_millis(100));
    }
    // A guardian that sleeps again has decided whether it restores.
    let start = Instant::now();
    while !std::fs::read_to_string(format!("/proc/{guardian}/stat")).unwrap().contains(") S ") {
        assert!(start.elapsed() < TIMEOUT, "the guardian does not wait");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(std::fs::read_to_string(&program.current).unwrap().trim(), InDirectory::NEW);
    program.send_until(libc::SIGKILL, InDirectory::OLD);
}
