//! `--root`: captured trees of every kind of host. Nothing is measured, and nothing of this machine
//! slips in.

use super::{alarms, fixture, fixtures, json, pg_timing, ran};
use serde_json::Value;
use std::path::Path;

fn checked(root: &Path, arguments: &[&str]) -> (i32, String) {
    let (status, stdout, stderr) = ran(pg_timing().arg("--root").arg(root).args(arguments));
    assert_eq!(stderr, "", "{}", root.display());
    (status, stdout)
}

fn report(host: &str) -> (i32, Value) {
    let (status, stdout) = checked(&fixture("hosts").join(host), &["--format", "json"]);
    (status, json(&stdout))
}

/// Whole outputs: what a DBA of each host reads, and what a program does.
#[test]
fn every_host() {
    let hosts = fixtures("hosts");
    assert!(hosts.len() >= 20, "{hosts:?}");
    for host in hosts {
        let root = fixture("hosts").join(&host);
        let (status, text) = checked(&root, &[]);
        insta::assert_snapshot!(format!("{host}.text"), format!("{text}status {status}\n"));
        let (same, json) = checked(&root, &["--format", "json"]);
        assert_eq!(same, status, "{host}");
        insta::assert_snapshot!(format!("{host}.json"), json);
    }
}

/// Hosts with nothing wrong raise nothing.
#[test]
fn clean_hosts_are_ok() {
    for host in [
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
        "freebsd-tsc-low",
        "firecracker",
    ] {
        let (status, report) = report(host);
        assert_eq!((status, alarms(&report)), (0, vec![]), "{host}");
    }
}

/// What is wrong is named, and by its gravest name.
#[test]
fn bad_hosts_are_named() {
    for (host, status, id, severity) in [
        ("docker-desktop-hpet", 2, "tsc-demoted", "warning"),
        ("docker-desktop-hpet", 2, "clock-slow", "critical"),
        ("ec2-xen", 2, "clocksource-slow", "warning"),
        ("ec2-xen-tsc-by-hand", 1, "clocksource-not-persistent", "warning"),
        ("azure-msr", 2, "clocksource-slow", "warning"),
        ("virtualbox-acpi_pm", 2, "clocksource-slow", "warning"),
        ("bare-intel-leaf-wrong", 1, "tsc-rate-mismatch", "warning"),
        ("two-socket-warp", 2, "tsc-demoted", "warning"),
        ("two-socket-reliable-skew", 2, "tsc-unchecked", "critical"),
        ("two-socket-reliable-skew", 2, "cpu-skew", "critical"),
        ("demoted-tsc-adjust", 2, "tsc-auto-demoted", "warning"),
        ("clocksource-refused", 2, "clocksource-refused", "warning"),
        ("old-jiffies", 2, "clock-coarse", "critical"),
        ("ntp-slew-limit", 1, "drift", "warning"),
        ("freebsd-acpi-fast", 2, "clocksource-slow", "warning"),
        ("freebsd-hpet", 2, "clocksource-slow", "warning"),
    ] {
        let (got, report) = report(host);
        assert_eq!(got, status, "{host}: {:?}", alarms(&report));
        assert!(alarms(&report).contains(&(id.into(), severity.into())), "{host}: {id}: {:?}", alarms(&report));
    }
}

/// The model case: what, when, where and why, out of the kernel's own log.
#[test]
fn docker_desktop_is_told_why() {
    let (_, report) = report("docker-desktop-hpet");
    let demoted = report["findings"].as_array().unwrap().iter().find(|f| f["id"] == "tsc-demoted").unwrap();
    let summary = demoted["summary"].as_str().unwrap();
    for words in ["at 7823 s", "CPU 2", "drifted from hpet", "the clock source is now hpet"] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    let fix = demoted["fix"][0]["what"].as_str().unwrap();
    assert!(
        fix.contains("restart Docker Desktop") && fix.contains("a running kernel cannot use a demoted TSC again"),
        "{fix}"
    );
}

#[test]
fn an_empty_tree_tells_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let (status, stdout) = checked(empty.path(), &["--format", "json"]);
    let report = json(&stdout);
    assert_eq!(status, 3);
    assert_eq!(report["verdict"]["severity"], "unknown");
    assert!(report["host"]["kernel"]["unavailable"].is_string(), "{report}");
    assert!(report["findings"].as_array().unwrap().iter().all(|f| f["severity"] == "unknown"), "{report}");
    assert_eq!(report["clocks"].as_array().unwrap().len(), 0);
}

/// Each file of a tree may be missing: what it told is unknown, and nothing else ends.
#[test]
fn a_tree_that_misses_any_file() {
    let host = fixture("hosts/docker-desktop-hpet");
    let files = files(&host);
    assert!(files.len() > 10, "{files:?}");
    for missing in &files {
        let dir = tempfile::tempdir().unwrap();
        for file in files.iter().filter(|file| *file != missing) {
            let to = dir.path().join(file.strip_prefix(&host).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(file, to).unwrap();
        }
        let (status, _) = checked(dir.path(), &[]);
        assert!(status <= 3, "{}", missing.display());
    }
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What `--capture` writes, `--root` reads: the same host, the same figures, and no name.
#[test]
fn captured_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let (status, live, stderr) = ran(pg_timing().args(["-d", "0.5", "--format", "json", "--capture"]).arg(&tree));
    assert_eq!(stderr, "");
    let (again, captured) = checked(&tree, &["--format", "json"]);
    assert_eq!(again, status);
    let (live, captured) = (json(&live), json(&captured));
    for key in ["clocks", "clocksource", "drift"] {
        assert_eq!(live[key], captured[key], "{key}");
    }
    assert_eq!(live["tsc"]["frequency_khz"], captured["tsc"]["frequency_khz"]);
    assert_eq!(live["host"]["virtualization"], captured["host"]["virtualization"]);
    assert!(captured["host"]["name"]["unavailable"].is_string());
    // A second time it does not overwrite.
    let (status, _, stderr) = ran(pg_timing().args(["-d", "0.5", "--capture"]).arg(&tree));
    assert_eq!(status, 3);
    assert!(stderr.contains("exists and is not an empty directory"), "{stderr}");
}

#[test]
fn as_a_monitoring_plugin() {
    let (status, line) = checked(&fixture("hosts/docker-desktop-hpet"), &["--nagios"]);
    assert_eq!((status, line.lines().count()), (2, 1));
    assert!(line.starts_with("CLOCKS CRITICAL - ") && line.contains(" | system_read=0.00000734"), "{line}");
}

/// A log that the user names is read, whatever host it is of.
#[test]
fn a_named_kernel_log() {
    let log = "[    1.000000] clocksource: Switched to clocksource tsc\n\
               [  500.000000] tsc: Marking TSC unstable due to clocksource watchdog\n";
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    let (_, stdout, _) =
        ran(pg_timing().args(["--root", root, "--kernel-log", "-", "--format", "json"]).write_stdin(log));
    let story = json(&stdout)["kernel"]["story"].to_string();
    assert!(story.contains("marked") && story.contains("500 s"), "{story}");
}
