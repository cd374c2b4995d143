//! `--root` on captured trees of every kind of host. Nothing is measured, and no fact of this machine appears in the
//! report.

mod capture;
mod figures;
mod kernel_log;
mod missing_file;
mod wild;

use super::{alarms, findings, fixture, fixtures, json, pg_timing, run};
use ::pg_timing::host::check::CHECKS;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn check(root: &Path, arguments: &[&str]) -> (i32, String) {
    let (status, stdout, stderr) = run(pg_timing().arg("--root").arg(root).args(arguments));
    assert_eq!(stderr, "", "{}", root.display());
    (status, stdout)
}

fn report(root: &Path) -> (i32, Value) {
    let (status, stdout) = check(root, &["--format", "json"]);
    (status, json(&stdout))
}

fn host(name: &str) -> PathBuf {
    fixture("hosts").join(name)
}

#[test]
fn text_and_json_of_every_host() {
    let hosts = fixtures("hosts");
    assert_eq!(hosts.len(), 28, "{hosts:?}");
    for name in hosts {
        let (status, text) = check(&host(&name), &["--details"]);
        insta::assert_snapshot!(format!("{name}.text"), format!("{text}status {status}\n"));
        let (json_status, json) = check(&host(&name), &["--format", "json"]);
        assert_eq!(json_status, status, "{name}");
        // A new version changes no other line.
        let own_version = concat!("\"version\": \"", env!("CARGO_PKG_VERSION"), "\"");
        insta::assert_snapshot!(format!("{name}.json"), json.replacen(own_version, "\"version\": \"X.Y.Z\"", 1));
    }
}

/// Without details, a screen fits a terminal. The line `details:` has the command that was typed.
#[test]
fn screens_have_40_lines() {
    for name in fixtures("hosts") {
        let (status, screen, _) = run(pg_timing().current_dir(fixture("hosts")).args(["--root", &name]));
        let lines = screen.lines().count();
        assert!(lines <= 40, "{name}: {lines} lines");
        let (_, details, _) = run(pg_timing().current_dir(fixture("hosts")).args(["--details", "--root", &name]));
        let label = if details.contains("risk: ") { "details and risks" } else { "details" };
        let command = format!("\n{label}: pg_timing check --details --root {name}\n");
        assert_eq!(screen.contains(&command), screen != details, "{name}: {screen}");
        if ["kvm-tsc", "demoted-tsc-adjust"].contains(&name.as_str()) {
            insta::assert_snapshot!(format!("{name}.brief"), format!("{screen}status {status}\n"));
        }
    }
    for log in fixtures("kernel_logs") {
        let empty = tempfile::tempdir().unwrap();
        let log = fixture("kernel_logs").join(log);
        let lines = check(empty.path(), &["--kernel-log", log.to_str().unwrap()]).1.lines().count();
        assert!(lines <= 40, "{}: {lines} lines", log.display());
    }
}

/// Commands are not wrapped, because users paste them.
#[test]
fn screens_have_80_columns() {
    for name in fixtures("hosts") {
        for screen in [&["check"][..], &["check", "--details"], &["clocksource"]] {
            let (_, text, _) = run(pg_timing().current_dir(fixture("hosts")).args(screen).args(["--root", &name]));
            let (_, report) = report(&host(&name));
            let commands = report["findings"].as_array().into_iter().flatten().flat_map(|finding| {
                let fixes = finding["fix"].as_array().into_iter().flatten();
                fixes.flat_map(|fix| [fix["command"].as_str(), fix["undo"].as_str()]).flatten()
            });
            let commands: Vec<&str> = commands.collect();
            let is_command = |line: &str| commands.iter().any(|command| line.ends_with(command));
            for line in text.lines().filter(|line| !is_command(line)) {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }
}

#[test]
fn good_hosts_have_no_alarms() {
    for name in [
        "kvm-tsc",
        "kvm-kvmclock",
        "kvm-kvmclock-tsc-offered",
        "ec2-nitro",
        "gce",
        "azure-tsc-page",
        "vmware",
        "bare-intel",
        "bare-intel-refined",
        "bare-amd",
        "aarch64-graviton",
        "gvisor",
        "suspended-laptop",
    ] {
        let (status, report) = report(&host(name));
        assert_eq!((status, alarms(&report)), (0, vec![]), "{name}");
    }
}

#[test]
fn bad_hosts_have_the_expected_alarm() {
    for (name, status, alarm) in [
        ("firecracker", 1, ("wall-clock", "warning")),
        ("docker-desktop-hpet", 2, ("tsc-demoted", "warning")),
        ("docker-desktop-hpet", 2, ("clock-slow", "critical")),
        ("ec2-xen", 2, ("clocksource-slow", "warning")),
        ("ec2-xen-tsc-by-hand", 1, ("clocksource-not-persistent", "warning")),
        ("azure-msr", 2, ("clocksource-slow", "warning")),
        ("virtualbox-acpi_pm", 2, ("clocksource-slow", "warning")),
        ("bare-intel-leaf-wrong", 1, ("tsc-rate-mismatch", "warning")),
        ("two-socket-warp", 2, ("tsc-demoted", "warning")),
        ("two-socket-reliable-skew", 2, ("tsc-unchecked", "critical")),
        ("two-socket-reliable-skew", 2, ("cpu-skew", "critical")),
        ("demoted-tsc-adjust", 2, ("tsc-auto-demoted", "warning")),
        ("clocksource-refused", 2, ("clocksource-refused", "warning")),
        ("old-jiffies", 2, ("clock-coarse", "critical")),
        ("ntp-slew-limit", 1, ("drift", "warning")),
    ] {
        let (actual_status, report) = report(&host(name));
        assert_eq!(actual_status, status, "{name}: {:?}", alarms(&report));
        assert!(alarms(&report).contains(&alarm), "{name}: {alarm:?}: {:?}", alarms(&report));
    }
}

/// Copies a captured tree without the file `left_out`.
pub(super) fn copy_tree(tree: &Path, left_out: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files(tree).iter().filter(|file| !file.ends_with(left_out)) {
        let to = copy.path().join(file.strip_prefix(tree).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(file, to).unwrap();
    }
    copy
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The kernel log says what happened, when, on which CPU and why. The finding must contain all of it.
#[test]
fn demotion_on_docker_desktop_is_explained() {
    let (_, report) = report(&host("docker-desktop-hpet"));
    let demoted = report["findings"].as_array().unwrap().iter().find(|f| f["id"] == "tsc-demoted").unwrap();
    let summary = demoted["summary"].as_str().unwrap();
    for words in [
        "7823 s after boot",
        "CPU 2",
        "jumped ahead of hpet by at least 14.7 s in at most 1.6 s",
        "the clock source is now hpet",
    ] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    let fix = demoted["fix"][0]["what"].as_str().unwrap();
    assert!(
        fix.contains("restart Docker Desktop") && fix.contains("a running kernel does not use an unstable TSC again"),
        "{fix}"
    );
}

#[test]
fn empty_tree_is_not_determined() {
    let empty = tempfile::tempdir().unwrap();
    let (status, report) = report(empty.path());
    assert_eq!((status, &report["verdict"]["severity"]), (3, &"unknown".into()));
    let message = "/proc/sys/kernel/osrelease: No such file or directory";
    assert_eq!(report["host"]["kernel"]["unavailable"], message);
    let findings = findings(&report);
    let ids: Vec<&str> = findings.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, CHECKS.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "one finding for each check");
    assert!(findings.iter().all(|(_, severity)| *severity == "unknown"), "{findings:?}");
    assert_eq!(report["clocks"], json("[]"));
}
