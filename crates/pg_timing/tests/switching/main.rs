//! Tests of `clocksource use` that switch the clock source of this machine, each for about a second, and restore it.
//!
//! They are a separate test program, because no other test may measure a clock at the same time.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// Clock sources that every host can use without harm.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
/// The deadline of each step. No step takes that long, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Only one test at a time may switch.
static LOCK: Mutex<()> = Mutex::new(());

/// The current clock source of this machine and another fast one. Dropping it restores the current one.
struct Switchable {
    old: String,
    other: String,
    _lock: MutexGuard<'static, ()>,
}

impl Switchable {
    /// Returns `None` and prints the reason if this machine cannot switch.
    fn new() -> Option<Switchable> {
        match Switchable::find() {
            Ok(switchable) => Some(switchable),
            Err(reason) => {
                eprintln!("SKIPPED: {reason}");
                None
            }
        }
    }

    fn find() -> Result<Switchable, String> {
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let available = std::fs::read_to_string(AVAILABLE).map_err(|_| "this machine has no clock sources in sysfs")?;
        let old = current();
        if !FAST.contains(&old.as_str()) {
            return Err(format!("this machine uses {old}, which is not switched for a test"));
        }
        let other = available.split_whitespace().find(|name| FAST.contains(name) && *name != old);
        let other =
            other.ok_or_else(|| format!("this machine has no second fast clock source: {}", available.trim()))?;
        if std::fs::OpenOptions::new().write(true).open(CURRENT).is_err() {
            return Err(format!("no permission to write {CURRENT}"));
        }
        Ok(Switchable { old, other: other.into(), _lock: lock })
    }
}

impl Drop for Switchable {
    fn drop(&mut self) {
        if current() != self.old {
            std::fs::write(CURRENT, &self.old).unwrap();
        }
    }
}

fn current() -> String {
    std::fs::read_to_string(CURRENT).unwrap().trim().into()
}

fn clocksource(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.arg("clocksource").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the exit status, stdout and stderr.
fn parts(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    parts(clocksource(arguments).output().unwrap())
}

/// Calls `action`. Returns the clock sources that the machine used meanwhile, without repetitions, and the result.
fn watch<T>(action: impl FnOnce() -> T) -> (Vec<String>, T) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut names = vec![current()];
            loop {
                let is_last = done.load(Relaxed);
                let now = current();
                if names.last() != Some(&now) {
                    names.push(now);
                }
                if is_last {
                    return names;
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let result = action();
        done.store(true, Relaxed);
        (watcher.join().unwrap(), result)
    })
}

#[test]
fn old_clock_source_is_restored_after_the_trial() {
    let Some(host) = Switchable::new() else { return };
    let (old, other) = (host.old.as_str(), host.other.as_str());
    let start = Instant::now();
    let (names, (status, stdout, stderr)) = watch(|| run(&["use", other, "--for", "1"]));
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert_eq!(names, [old, other, old]);
    assert!(start.elapsed() >= Duration::from_secs(1));
    let position = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("{text}: {stdout}"));
    let positions = [position(&format!("echo {old} > {CURRENT}")), position("before  "), position("now  ")];
    assert!(positions.is_sorted(), "{stdout}");
    assert!(stdout.ends_with(&format!("The clock source is {old} again.\n")), "{stdout}");
    let costs = stdout.lines().filter(|line| line.contains(" +- ") && line.ends_with("vDSO"));
    assert_eq!(costs.count(), 2, "the read costs of both clock sources: {stdout}");
}

#[test]
fn kept_clock_source_stays_after_the_program_ends() {
    let Some(host) = Switchable::new() else { return };
    let other = host.other.as_str();
    let (status, stdout, stderr) = run(&["use", other, "--keep"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert_eq!(current(), other);
    assert!(stdout.contains(&format!("clocksource={other}")) && stdout.contains("risk: "), "{stdout}");
}

/// A process that has switched to the other clock source for 10 minutes. Dropping it kills the process.
struct Switched {
    child: Child,
    lines: Receiver<String>,
}

impl Switched {
    /// Starts the process and waits until it has switched.
    fn start(host: &Switchable) -> Switched {
        let mut command = clocksource(&["use", &host.other, "--for", "600"]);
        // The program that runs the tests may ignore these signals, and a child inherits this.
        // SAFETY: signal() may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTSTP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            })
        };
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let switched = Switched { child, lines };
        let start = Instant::now();
        while current() != host.other {
            assert!(start.elapsed() < TIMEOUT, "the clock source did not change");
            thread::sleep(Duration::from_millis(2));
        }
        switched
    }

    /// Reads lines until the process waits.
    fn read_until_wait(&self) {
        let start = Instant::now();
        loop {
            let line = self.lines.recv_timeout(TIMEOUT.saturating_sub(start.elapsed())).expect("a line about the wait");
            if line.ends_with("restores it at once.") {
                return;
            }
        }
    }

    fn send(&self, signal: libc::c_int) {
        // SAFETY: sends a signal to a child that was not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }

    /// Returns the remaining lines and the exit status, which is `None` if a signal ended the process.
    fn finish(mut self) -> (Vec<String>, Option<i32>) {
        let start = Instant::now();
        let mut text = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT.saturating_sub(start.elapsed())) {
                Ok(line) => text.push(line),
                Err(RecvTimeoutError::Disconnected) => return (text, self.child.wait().unwrap().code()),
                Err(RecvTimeoutError::Timeout) => panic!("the process did not end after the signal: {text:?}"),
            }
        }
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn second_process_is_refused_and_a_signal_during_the_wait_restores() {
    let Some(host) = Switchable::new() else { return };
    let switched = Switched::start(&host);
    switched.read_until_wait();
    let (status, stdout, stderr) = run(&["use", &host.old, "--for", "1"]);
    assert_eq!((status, stdout.as_str()), (Some(3), ""));
    assert!(stderr.contains("another pg_timing is switching"), "{stderr}");
    assert_eq!(current(), host.other);

    let start = Instant::now();
    switched.send(libc::SIGINT);
    let (text, status) = switched.finish();
    assert_eq!((status, current()), (Some(0), host.old.clone()), "{text:?}");
    // The process notices the signal within 20 ms. A busy machine needs longer.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let [line] = text.as_slice() else { panic!("{text:?}") };
    assert!(line.starts_with("Stopped after "), "{line}");
    assert!(line.ends_with(&format!(" s. The clock source is {} again.", host.old)), "{line}");
}

/// Every signal that a terminal or `kill` sends arrives while the process measures. None may end or stop the process
/// before it has restored the clock source.
#[test]
fn all_signals_during_the_measurement_restore() {
    let Some(host) = Switchable::new() else { return };
    let switched = Switched::start(&host);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
        switched.send(signal);
    }
    let (text, status) = switched.finish();
    assert_eq!((status, current()), (Some(3), host.old.clone()), "{text:?}");
}

/// An impatient user presses Ctrl-C twice. The second signal arrives while the process restores the clock source.
#[test]
fn repeated_signal_during_the_measurement_restores() {
    let Some(host) = Switchable::new() else { return };
    let switched = Switched::start(&host);
    switched.send(libc::SIGINT);
    thread::sleep(Duration::from_millis(5));
    switched.send(libc::SIGINT);
    let (text, status) = switched.finish();
    assert_eq!((status, current()), (Some(3), host.old.clone()), "{text:?}");
}

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
    fn start(seconds: &str, stderr: impl Into<Stdio>) -> std::io::Result<InDirectory> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("available_clocksource"), "tsc kvm-clock \n").unwrap();
        let current = directory.path().join("current_clocksource");
        std::fs::write(&current, format!("{}\n", InDirectory::OLD)).unwrap();
        let mut command = clocksource(&["use", InDirectory::NEW, "--for", seconds, "--force"]);
        let path = std::ffi::CString::new(directory.path().to_str().unwrap()).unwrap();
        // SAFETY: only system calls between fork and exec.
        unsafe { command.pre_exec(move || mount_clock_sources(&path)) };
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn()?;
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
    let start = |signal| InDirectory::start(if STOP.contains(&signal) { "1" } else { "600" }, Stdio::null());
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
    let program = match InDirectory::start("600", Stdio::null()) {
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

/// Nobody reads stderr, and it is full.
#[test]
fn guardian_ends_after_it_has_restored() {
    let (_reader, writer) = std::io::pipe().unwrap();
    let set_flags = |flags: libc::c_int| {
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&writer), libc::F_SETFL, flags) }, 0);
    };
    set_flags(libc::O_NONBLOCK);
    while std::io::Write::write(&mut &writer, &[b'x'; 4096]).is_ok() {}
    set_flags(0);
    let program = match InDirectory::start("600", writer.try_clone().unwrap()) {
        Ok(program) => program,
        Err(error) => return eprintln!("SKIPPED: this process may not mount a directory: {error}"),
    };
    let guardian = program.guardian();
    program.send_until(libc::SIGKILL, InDirectory::OLD);
    let start = Instant::now();
    let stat = || std::fs::read_to_string(format!("/proc/{guardian}/stat"));
    // The kernel removes an ended process when its parent has waited for it.
    while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < TIMEOUT, "the guardian waits for the reader of stderr");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that the command is refused for the given reason and changes nothing.
fn assert_not_permitted(mut command: Command, host: &Switchable, reason: &str) {
    let output = match command.output() {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return eprintln!("SKIPPED: this process may not run the program as another user or with a read-only /sys");
        }
        output => output.unwrap(),
    };
    let (status, stdout, stderr) = parts(output);
    assert_eq!((status, stdout.as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains(&format!("cannot write {CURRENT}")) && stderr.contains(reason), "{stderr}");
    assert_eq!(current(), host.old);
}

#[test]
fn users_other_than_root_are_refused() {
    let Some(host) = Switchable::new() else { return };
    let mut command = clocksource(&["use", &host.other, "--for", "1"]);
    command.uid(65534);
    assert_not_permitted(command, &host, "only root may");
}

#[test]
fn read_only_sysfs_is_refused() {
    let Some(host) = Switchable::new() else { return };
    let mut command = clocksource(&["use", &host.other, "--for", "1"]);
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(make_sys_read_only) };
    assert_not_permitted(command, &host, "read-only");
}

/// Enters a mount namespace with a read-only /sys, as in a container.
fn make_sys_read_only() -> std::io::Result<()> {
    let check = |status| if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    let (sys, none) = (c"/sys".as_ptr(), std::ptr::null());
    // SAFETY: plain system calls on constants.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        check(libc::mount(c"none".as_ptr(), sys, none, libc::MS_PRIVATE, none.cast()))?;
        check(libc::mount(none, sys, none, libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, none.cast()))
    }
}
