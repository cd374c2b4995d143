//! The built program, run as people run it.

mod bad_input;
mod captured;
mod check;
mod clocksource;
mod drop_in;
mod faults;
mod interrupt;
mod plan;
mod read;
mod schema;
mod terminal;
mod test_command;

use assert_cmd::Command;
use serde_json::Value;
use std::path::PathBuf;

/// The program, under the runner of a foreign architecture if cargo has one.
fn pg_timing() -> Command {
    assert_cmd::cargo::cargo_bin_cmd!("pg_timing")
}

/// The program by PostgreSQL's name, through a symlink as `make install` makes it.
fn pg_test_timing(dir: &tempfile::TempDir) -> Command {
    let link = dir.path().join("pg_test_timing");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("pg_timing"), &link).unwrap();
    Command::new(link)
}

fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

/// The names in a folder of fixtures, in order.
fn fixtures(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(fixture(folder)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Its exit status, stdout and stderr.
fn ran(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().expect("it was not killed"), text(&output.stdout), text(&output.stderr))
}

/// Arguments that must end with status 3, one line of error, a hint, and nothing on stdout. Returns stderr.
fn refused(arguments: &[&str]) -> String {
    let (status, stdout, stderr) = ran(pg_timing().args(arguments));
    assert_eq!((status, stdout.as_str()), (3, ""), "{arguments:?}: {stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{arguments:?}: {stderr}");
    assert!(lines[0].starts_with("pg_timing: error: ") && lines[1].starts_with("hint: "), "{stderr}");
    stderr
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// The findings of a report that are alarms: id and severity.
fn alarms(report: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap().to_string();
    let findings = report["findings"].as_array().unwrap();
    let all = findings.iter().map(|f| (text(&f["id"]), text(&f["severity"])));
    all.filter(|(_, severity)| severity == "warning" || severity == "critical").collect()
}
