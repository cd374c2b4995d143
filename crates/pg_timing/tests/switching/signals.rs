//! Signals while the clock source of this machine is switched.

use super::{Switchable, TIMEOUT, clocksource, current, run};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

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
