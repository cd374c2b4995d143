//! Runs the built program as users do.

mod bad_input;
mod captured;
mod check;
mod clocksource;
mod compare;
mod drop_in;
mod ephemeral;
mod fake_server;
mod faults;
mod guide;
mod help;
mod hostile_server;
mod hostile_text;
mod interrupt;
mod limits;
mod log;
mod nagios;
mod output_directories;
mod plan;
mod read;
mod report;
mod schema;
mod secrets;
mod terminal;
mod test_command;

use assert_cmd::Command;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The program is killed after this time, so that a test fails instead of waiting forever.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the program. It runs under the emulator of another architecture if cargo is configured with one.
fn pg_timing() -> Command {
    assert_cmd::cargo::cargo_bin_cmd!("pg_timing")
}

/// Returns the program under PostgreSQL's name, through a symlink as `make install` creates it.
fn pg_test_timing(dir: &tempfile::TempDir) -> Command {
    let link = dir.path().join("pg_test_timing");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("pg_timing"), &link).unwrap();
    Command::new(link)
}

fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

/// Returns the sorted names in a fixture directory.
fn fixtures(dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(fixture(dir)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs the command. Returns its exit status, stdout and stderr.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.timeout(TIMEOUT).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let status = output.status.code().expect("a signal ended the program, or the timeout did");
    (status, text(&output.stdout), text(&output.stderr))
}

/// Runs the program with bad arguments. They must lead to status 3, one error line, one hint line and an empty stdout.
/// Returns stderr.
fn refused(arguments: &[&str]) -> String {
    let (status, stdout, stderr) = run(pg_timing().args(arguments));
    assert_eq!((status, stdout.as_str()), (3, ""), "{arguments:?}: {stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{arguments:?}: {stderr}");
    assert!(lines[0].starts_with("pg_timing: error: ") && lines[1].starts_with("hint: "), "{stderr}");
    stderr
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// Asserts that the exit status is that of the report's verdict.
fn assert_status_matches_verdict(status: i32, report: &Value) {
    let verdict = report["verdict"]["severity"].as_str().unwrap();
    assert_eq!(["ok", "warning", "critical", "unknown"].get(status as usize), Some(&verdict), "{status}");
}

/// Returns the id and severity of every finding.
fn findings(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|f| (f["id"].as_str().unwrap(), f["severity"].as_str().unwrap())).collect()
}

/// Returns the id and severity of the findings that are warnings or critical.
fn alarms(report: &Value) -> Vec<(&str, &str)> {
    findings(report).into_iter().filter(|(_, severity)| matches!(*severity, "warning" | "critical")).collect()
}
