//! Ctrl-C prints what was measured until then.

#![cfg(target_os = "linux")]

use super::{TIMEOUT, assert_status_matches_verdict, json};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Starts the program, interrupts it while it measures, and returns its output. The program would run for 10 minutes.
fn run_interrupted(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(arguments).args(["-d", "600"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let start = Instant::now();
    // The program measures after far less CPU time than this.
    while cpu_time(&child) < Duration::from_millis(200) {
        assert!(start.elapsed() < TIMEOUT, "the program does not measure");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: sends a signal to a child that was not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < TIMEOUT, "the program did not stop");
    output
}

/// Returns the CPU time that the child used in user mode and in the kernel.
fn cpu_time(child: &Child) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // The command name before ")" can contain spaces. The 12th and 13th fields after it are utime and stime.
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
    let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    // Linux shows 100 ticks per second on every architecture that this program supports.
    Duration::from_millis(10 * ticks)
}

#[test]
fn interrupted_check_prints_its_report() {
    let output = run_interrupted(&["check", "--format", "json"]);
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(report["interrupted"], true);
    assert!(report["clocks"][0]["read_ns"].as_f64().unwrap() > 0.0, "{report}");
    assert_status_matches_verdict(output.status.code().unwrap(), &report);
}

#[test]
fn interrupted_test_prints_the_first_clock_and_is_not_done() {
    let output = run_interrupted(&["test"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("Average loop time including overhead"), "{stdout}");
    assert!(!stdout.contains("RDTSCP"), "{stdout}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "interrupted: the output shows what was measured until then\n");
    assert_eq!(output.status.code(), Some(3));
}

/// The other end of the pipe stays open, so there is no end of the input.
#[test]
fn interrupted_log_prints_what_was_read() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["explain", "--read-cost", "20", "--plan", "-", "--all", "--format", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let log = std::fs::read(super::fixture("logs").join("server.log")).unwrap();
    stdin.write_all(&log).unwrap();
    let start = Instant::now();
    // The program has read all of the pipe.
    loop {
        let mut waiting: libc::c_int = 0;
        // SAFETY: FIONREAD writes the number of bytes in the pipe.
        unsafe { libc::ioctl(stdin.as_raw_fd(), libc::FIONREAD, &mut waiting) };
        assert!(start.elapsed() < TIMEOUT, "the program does not read");
        if waiting == 0 {
            break;
        }
        std::thread::yield_now();
    }
    // SAFETY: sends a signal to a child that was not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let report = json(&String::from_utf8(output.stdout).unwrap());
    // A part of the last block may not be parsed yet.
    assert!(report["total"]["runs"].as_u64().unwrap() > 0, "{report}");
    assert_eq!((&report["is_incomplete"], output.status.code()), (&serde_json::Value::Bool(true), Some(3)));
}
