//! Ctrl-C prints what has been measured so far.

use super::json;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    // SAFETY: a signal to our own child, which has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
}

/// Long enough for the handlers to be in place and the first round to be over.
const UNDER_WAY: Duration = Duration::from_millis(1500);

#[test]
fn check_prints_what_it_has() {
    let begun = Instant::now();
    let child = start(&["-d", "600", "--format", "json"]);
    std::thread::sleep(UNDER_WAY);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "it did not wait for the end");
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(report["interrupted"], true);
    assert!(report["clocks"][0]["read_ns"].as_f64().unwrap() > 0.0, "{report}");
    assert!(output.status.code().is_some_and(|code| code <= 2));
}

#[test]
fn test_prints_what_it_has_and_is_not_done() {
    let child = start(&["test", "-d", "600"]);
    std::thread::sleep(UNDER_WAY);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("Average loop time including overhead"), "{stdout}");
    assert!(!stdout.contains("RDTSCP"), "{stdout}");
    assert_eq!(output.status.code(), Some(3));
}
