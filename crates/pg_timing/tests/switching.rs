//! `clocksource use` on this very host: its clock source really changes, for about a second at a
//! time, and is what it was afterwards. A program of its own, so that no other test runs meanwhile.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// None of these does a host harm.
const FAST: &[&str] = &["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The clock source of this host, and another one. Whatever a test does, it is put back.
struct Switchable {
    old: String,
    other: String,
    _alone: MutexGuard<'static, ()>,
}

fn current() -> String {
    std::fs::read_to_string(CURRENT).unwrap().trim().into()
}

/// `None`, and a word on stderr, where there is nothing to switch or no right to.
fn switchable() -> Option<Switchable> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let not_tested = |why: &str| eprintln!("SKIPPED: {why}");
    let Ok(available) = std::fs::read_to_string(AVAILABLE) else {
        not_tested("this machine has no sysfs");
        return None;
    };
    let old = current();
    let mut fast = available.split_whitespace().filter(|name| FAST.contains(name));
    let other = fast.find(|name| *name != old).map(str::to_string);
    match other {
        None => not_tested(&format!("this machine offers no second fast clock source ({})", available.trim())),
        Some(_) if !FAST.contains(&old.as_str()) => {
            not_tested(&format!("this machine runs on {old}, and is left alone"))
        }
        Some(_) if std::fs::OpenOptions::new().write(true).open(CURRENT).is_err() => {
            not_tested(&format!("{CURRENT} cannot be written"));
        }
        Some(other) => return Some(Switchable { old, other, _alone: alone }),
    }
    None
}

impl Drop for Switchable {
    fn drop(&mut self) {
        if current() != self.old {
            std::fs::write(CURRENT, &self.old).unwrap();
        }
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.arg("clocksource").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit status, stdout and stderr.
fn ran(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs `during` and notes which clock sources the host has meanwhile, without repeats.
fn seen<T>(during: impl FnOnce() -> T) -> (Vec<String>, T) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut names = vec![current()];
            loop {
                let last = over.load(Relaxed);
                let now = current();
                if names.last() != Some(&now) {
                    names.push(now);
                }
                if last {
                    return names;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let result = during();
        over.store(true, Relaxed);
        (watcher.join().unwrap(), result)
    })
}

#[test]
fn there_and_back() {
    let Some(host) = switchable() else { return };
    let (old, other) = (&host.old, &host.other);
    let begun = Instant::now();
    let (names, (status, stdout, stderr)) = seen(|| ran(command(&["use", other, "--for", "1"])));
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert_eq!(names, [old.as_str(), other, old]);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let at = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("{text}: {stdout}"));
    let order = [at(&format!("echo {old} > {CURRENT}")), at("before  "), at("now  "), at("again.")];
    assert!(order.is_sorted(), "{stdout}");
    let costs = stdout.lines().filter(|line| line.contains(" +- ") && line.ends_with("vDSO"));
    assert_eq!(costs.count(), 2, "both are fast ones: {stdout}");
    assert_eq!(current(), *old);
}

#[test]
fn kept_until_told_otherwise() {
    let Some(host) = switchable() else { return };
    let (status, stdout, stderr) = ran(command(&["use", &host.other, "--keep"]));
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert_eq!(current(), host.other);
    assert!(stdout.contains(&format!("clocksource={}", host.other)) && stdout.contains("risk: "), "{stdout}");
    let (status, ..) = ran(command(&["use", &host.old, "--keep"]));
    assert_eq!((status, current()), (Some(0), host.old.clone()));
}

/// A run that would go on for ten minutes, past its switch.
fn under_way(host: &Switchable, until_it_waits: bool) -> (Child, BufReader<ChildStdout>) {
    let mut command = command(&["use", &host.other, "--for", "600"]);
    // SAFETY: one call that is allowed between fork and exec. A test runner may ignore these.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTSTP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        })
    };
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while until_it_waits && !line.ends_with("restores it at once.\n") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while current() != host.other {
        assert!(Instant::now() < deadline, "it never switched");
        std::thread::sleep(Duration::from_millis(2));
    }
    (child, stdout)
}

fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: a signal to our own child, which has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

#[test]
fn a_signal_while_it_waits() {
    let Some(host) = switchable() else { return };
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (mut child, mut stdout) = under_way(&host, true);
        let (second, _, stderr) = ran(command(&["use", &host.old, "--for", "1"]));
        assert_eq!(second, Some(3));
        assert!(stderr.contains("another pg_timing is switching"), "{stderr}");

        let sent = Instant::now();
        send(&child, signal);
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!((child.wait().unwrap().code(), current()), (Some(0), host.old.clone()), "{text}");
        // The waiting takes 20 ms to notice; the rest is for a busy machine.
        assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
        assert!(text.starts_with("Stopped after ") && text.contains(&host.old), "{text}");
    }
}

/// Every signal that a terminal sends, twice, in the midst of measuring.
#[test]
fn two_signals_while_it_measures() {
    let Some(host) = switchable() else { return };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
        let (mut child, _stdout) = under_way(&host, false);
        send(&child, signal);
        std::thread::sleep(Duration::from_millis(5));
        send(&child, signal);
        assert_eq!((child.wait().unwrap().code(), current()), (Some(3), host.old.clone()), "signal {signal}");
    }
}

#[test]
fn no_right_to() {
    let Some(host) = switchable() else { return };
    let refused = |mut command: Command, why: &str| {
        // Where the user may not run the program, or namespaces are refused, there is nothing to see.
        let Ok(output) = command.output() else { return eprintln!("SKIPPED: {why}") };
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{stderr}");
        assert!(stderr.contains(&format!("cannot write {CURRENT}")) && stderr.contains(why), "{stderr}");
        assert_eq!(current(), host.old);
    };
    let mut as_nobody = command(&["use", &host.other, "--for", "1"]);
    as_nobody.uid(65534);
    refused(as_nobody, "only root may");
    let mut contained = command(&["use", &host.other, "--for", "1"]);
    // SAFETY: system calls only, between fork and exec.
    unsafe { contained.pre_exec(read_only_sys) };
    refused(contained, "read-only");
}

/// /sys as a container has it.
fn read_only_sys() -> std::io::Result<()> {
    let done = |rc| if rc == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    let (sys, none) = (c"/sys".as_ptr(), std::ptr::null());
    // SAFETY: plain system calls on constants.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        done(libc::mount(c"none".as_ptr(), sys, none, libc::MS_PRIVATE, none.cast()))?;
        done(libc::mount(none, sys, none, libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, none.cast()))
    }
}
