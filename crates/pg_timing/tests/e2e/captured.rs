//! `--root` on captured trees of every kind of host. Nothing is measured, and no fact of this machine appears in the
//! report.

use super::{alarms, findings, fixture, fixtures, json, pg_timing, run};
use pg_timing::report::finding_id;
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
    assert_eq!(hosts.len(), 31, "{hosts:?}");
    for name in hosts {
        let (status, text) = check(&host(&name), &[]);
        insta::assert_snapshot!(format!("{name}.text"), format!("{text}status {status}\n"));
        let (json_status, json) = check(&host(&name), &["--format", "json"]);
        assert_eq!(json_status, status, "{name}");
        insta::assert_snapshot!(format!("{name}.json"), json);
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
        "freebsd-tsc-low",
        "firecracker",
    ] {
        let (status, report) = report(&host(name));
        assert_eq!((status, alarms(&report)), (0, vec![]), "{name}");
    }
}

#[test]
fn bad_hosts_have_the_expected_alarm() {
    for (name, status, alarm) in [
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
        ("freebsd-acpi-fast", 2, ("clocksource-slow", "warning")),
        ("freebsd-hpet", 2, ("clocksource-slow", "warning")),
    ] {
        let (actual_status, report) = report(&host(name));
        assert_eq!(actual_status, status, "{name}: {:?}", alarms(&report));
        assert!(alarms(&report).contains(&alarm), "{name}: {alarm:?}: {:?}", alarms(&report));
    }
}

/// Copies a captured tree without the file `left_out`.
fn copy_tree(tree: &Path, left_out: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files(tree).iter().filter(|file| !file.ends_with(left_out)) {
        let to = copy.path().join(file.strip_prefix(tree).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(file, to).unwrap();
    }
    copy
}

/// PostgreSQL's documentation calls 100 ns good. From 500 ns, a node's time is mostly its clock reads.
#[test]
fn read_cost_decides_whether_the_clock_is_slow() {
    let path = "pg_timing/measured.json";
    let good_host = host("kvm-tsc");
    let mut measured = json(&std::fs::read_to_string(good_host.join(path)).unwrap());
    let tree = copy_tree(&good_host, path);
    for (read_ns, spread_ns, status, severity) in [
        (20.0, 1.0, 0, "ok"),
        (99.0, 0.0, 0, "ok"),
        (101.0, 0.0, 1, "warning"),
        (101.0, 2.0, 0, "ok"),
        (499.0, 0.0, 1, "warning"),
        (501.0, 0.0, 2, "critical"),
        (501.0, 2.0, 1, "warning"),
        (790.0, 10.0, 2, "critical"),
        (7400.0, 100.0, 2, "critical"),
    ] {
        assert_eq!(measured["clocks"][0]["name"], "system");
        measured["clocks"][0]["read_ns"] = read_ns.into();
        measured["clocks"][0]["read_spread_ns"] = spread_ns.into();
        std::fs::write(tree.path().join(path), measured.to_string()).unwrap();
        let (actual_status, report) = report(tree.path());
        assert_eq!((actual_status, &report["verdict"]["severity"]), (status, &severity.into()), "{read_ns} ns");
        assert!(findings(&report).contains(&("clock-slow", severity)), "{read_ns} ns: {:?}", findings(&report));
        let other_alarms: Vec<_> = alarms(&report).into_iter().filter(|(id, _)| *id != "clock-slow").collect();
        assert_eq!(other_alarms, [], "{read_ns} ns");
    }
}

/// A hypervisor that intercepts RDTSC makes it slower than the system clock, and PostgreSQL 19 uses it by default.
#[test]
fn tsc_that_is_emulated_is_critical() {
    let path = "pg_timing/measured.json";
    let good_host = host("kvm-tsc");
    let mut measured = json(&std::fs::read_to_string(good_host.join(path)).unwrap());
    let tree = copy_tree(&good_host, path);
    for clock in measured["clocks"].as_array_mut().unwrap() {
        if clock["name"].as_str().unwrap().contains("rdtsc") {
            clock["read_ns"] = 1400.0.into();
        }
    }
    std::fs::write(tree.path().join(path), measured.to_string()).unwrap();
    let (status, report) = report(tree.path());
    assert_eq!((status, alarms(&report)), (2, vec![("tsc-slow", "critical")]));
    let finding = report["findings"].as_array().unwrap().iter().find(|f| f["id"] == "tsc-slow").unwrap();
    let command = finding["fix"][0]["command"].as_str().unwrap();
    assert!(command.contains("timing_clock_source = 'system'"), "{finding}");
    assert!(!report["verdict"]["summary"].as_str().unwrap().contains("with PostgreSQL 19's tsc"), "{report}");
}

/// The kernel log says what happened, when, on which CPU and why. The finding must contain all of it.
#[test]
fn demotion_on_docker_desktop_is_explained() {
    let (_, report) = report(&host("docker-desktop-hpet"));
    let demoted = report["findings"].as_array().unwrap().iter().find(|f| f["id"] == "tsc-demoted").unwrap();
    let summary = demoted["summary"].as_str().unwrap();
    for words in ["7823 s after boot", "CPU 2", "drifted from hpet", "the clock source is now hpet"] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    let fix = demoted["fix"][0]["what"].as_str().unwrap();
    assert!(
        fix.contains("restart Docker Desktop") && fix.contains("a running kernel does not use an unstable TSC again"),
        "{fix}"
    );
}

/// The number of checks.
const FINDINGS: usize = finding_id::ALL.len();

#[test]
fn empty_tree_is_not_determined() {
    let empty = tempfile::tempdir().unwrap();
    let (status, report) = report(empty.path());
    assert_eq!((status, &report["verdict"]["severity"]), (3, &"unknown".into()));
    let message = "/proc/sys/kernel/osrelease: No such file or directory";
    assert_eq!(report["host"]["kernel"]["unavailable"], message);
    let findings = findings(&report);
    assert_eq!(findings.len(), FINDINGS);
    assert!(findings.iter().all(|(_, severity)| *severity == "unknown"), "{findings:?}");
    assert_eq!(report["clocks"], json("[]"));
}

/// What changes if one file of docker-desktop-hpet is missing.
struct MissingFile {
    path: &'static str,
    status: i32,
    /// JSON pointers of the facts that become unavailable
    unavailable: &'static [&'static str],
    /// the findings that change, with their new severity
    findings: &'static [(&'static str, &'static str)],
}

const fn missing(
    path: &'static str,
    status: i32,
    unavailable: &'static [&'static str],
    findings: &'static [(&'static str, &'static str)],
) -> MissingFile {
    MissingFile { path, status, unavailable, findings }
}

const MISSING_FILES: [MissingFile; 14] = [
    missing(".dockerenv", 2, &["/host/container"], &[]),
    missing("pg_timing/cpuid.json", 2, &[], &[]),
    missing(
        "pg_timing/measured.json",
        1,
        &["/tsc/frequency_khz", "/activity"],
        &[
            ("clock-backward", "unknown"),
            ("clock-slow", "unknown"),
            ("clock-coarse", "unknown"),
            ("clock-syscall", "unknown"),
            ("tsc-denied", "unknown"),
            ("tsc-rate-mismatch", "unknown"),
            ("cpu-skew", "unknown"),
            ("drift", "unknown"),
            ("clock-gaps", "unknown"),
        ],
    ),
    missing("pg_timing/ntp.json", 2, &["/host/ntp"], &[]),
    missing(
        "proc/cmdline",
        2,
        &["/host/boot_parameters"],
        &[("clocksource-not-persistent", "unknown"), ("tsc-unchecked", "unknown")],
    ),
    missing(
        "proc/cpuinfo",
        2,
        &["/host/architecture", "/host/cpu_flags", "/host/cpu_model", "/host/virtualization"],
        &[("tsc-absent", "unknown"), ("tsc-auto-demoted", "unknown"), ("tsc-slow", "unknown")],
    ),
    missing("proc/sys/kernel/osrelease", 2, &["/host/kernel"], &[]),
    missing("proc/uptime", 2, &["/host/uptime_seconds"], &[]),
    missing(
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        2,
        &["/clocksource/available"],
        &[("clocksource-not-persistent", "unknown")],
    ),
    missing(
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        2,
        &["/clocksource/current"],
        &[("clocksource-slow", "unknown"), ("clocksource-not-persistent", "unknown"), ("tsc-not-invariant", "unknown")],
    ),
    missing("sys/devices/system/cpu/online", 2, &["/cpus/online"], &[]),
    missing("sys/devices/system/node/online", 2, &["/host/numa_nodes"], &[]),
    missing("sys/power/suspend_stats/success", 2, &["/host/suspends"], &[]),
    missing(
        "var/log/dmesg",
        2,
        &["/kernel"],
        &[("clocksource-changed", "unknown"), ("clocksource-refused", "unknown"), ("tsc-firmware", "unknown")],
    ),
];

/// A missing file makes its own facts and findings unknown, and no others.
#[test]
fn missing_file_affects_only_its_own_facts() {
    let complete_tree = host("docker-desktop-hpet");
    let files = files(&complete_tree);
    let mut names: Vec<&Path> = files.iter().map(|file| file.strip_prefix(&complete_tree).unwrap()).collect();
    names.sort();
    assert_eq!(names, MISSING_FILES.map(|file| Path::new(file.path)), "every file is tested");

    let (_, complete) = report(&complete_tree);
    for missing in &MISSING_FILES {
        let tree = copy_tree(&complete_tree, missing.path);
        let (status, report) = report(tree.path());
        assert_eq!(status, missing.status, "{}", missing.path);
        let before = findings(&complete);
        let changed: Vec<_> = findings(&report).into_iter().filter(|finding| !before.contains(finding)).collect();
        assert_eq!(changed, missing.findings, "{}", missing.path);
        let before = unavailable(&complete);
        let new: Vec<_> = unavailable(&report).into_iter().filter(|fact| !before.contains(fact)).collect();
        assert_eq!(new, missing.unavailable, "{}", missing.path);
        // Without the CPUID leaves, the hypervisor bit of /proc/cpuinfo remains.
        if missing.path == "pg_timing/cpuid.json" {
            assert_eq!(report["host"]["virtualization"], "an unknown hypervisor");
        }
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the JSON pointers of the unavailable facts.
fn unavailable(report: &Value) -> Vec<String> {
    ["host", "tsc", "cpus", "clocksource", "kernel", "activity"]
        .iter()
        .flat_map(|section| {
            let facts = report[section].as_object().unwrap();
            match facts.contains_key("unavailable") {
                true => vec![format!("/{section}")],
                false => {
                    let unavailable = facts.iter().filter(|(_, fact)| fact.get("unavailable").is_some());
                    unavailable.map(|(key, _)| format!("/{section}/{key}")).collect()
                }
            }
        })
        .collect()
}

/// `--root` reads what `--capture` writes. The figures are the same; the host's name is left out.
#[test]
fn captured_tree_gives_the_same_report() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let (live_status, live, stderr) = run(pg_timing().args(["-d", "0.5", "--format", "json", "--capture"]).arg(&tree));
    assert_eq!(stderr, "");
    let (status, captured) = report(&tree);
    assert_eq!(status, live_status);
    let live = json(&live);
    for key in ["clocks", "clocksource", "drift"] {
        assert_eq!(live[key], captured[key], "{key}");
    }
    assert_eq!(findings(&live), findings(&captured));
    assert_eq!(live["tsc"]["frequency_khz"], captured["tsc"]["frequency_khz"]);
    assert_eq!(live["host"]["virtualization"], captured["host"]["virtualization"]);
    assert!(captured["host"]["name"]["unavailable"].is_string());

    let (status, stdout, stderr) = run(pg_timing().args(["-d", "0.5", "--capture"]).arg(&tree));
    assert_eq!((status, stdout.as_str()), (3, ""), "an existing tree is not overwritten");
    assert!(stderr.starts_with(&format!("pg_timing: error: \"{}\"", tree.display())), "{stderr}");
}

#[test]
fn nagios_line() {
    let (status, line) = check(&host("docker-desktop-hpet"), &["--nagios"]);
    assert_eq!((status, line.lines().count()), (2, 1));
    assert!(line.starts_with("CLOCKS CRITICAL - "), "{line}");
    let (_, performance_data) = line.trim_end().split_once(" | ").unwrap();
    assert_eq!(
        performance_data,
        "system_read=0.0000073420s;0.0000001000;0.0000005000;0 system_backward_steps=0;0;0;0 gaps=3.90%;;;0;100 \
         tsc_frequency_khz=2899940"
    );
}

/// A kernel log that the user names is read even if the tree has none.
#[test]
fn kernel_log_from_stdin() {
    let log = "[    1.000000] clocksource: Switched to clocksource tsc\n\
               [  500.000000] tsc: Marking TSC unstable due to clocksource watchdog\n";
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    let mut command = pg_timing();
    command.args(["--root", root, "--kernel-log", "-", "--format", "json"]).write_stdin(log);
    let (status, stdout, stderr) = run(&mut command);
    let report = json(&stdout);
    assert_eq!((status, stderr.as_str()), (1, ""));
    assert_eq!(alarms(&report), [("tsc-demoted", "warning")]);
    let story = report["kernel"]["story"].to_string();
    assert!(story.contains("marked") && story.contains("500 s"), "{story}");
    // No file has the kernel's list of clock sources, so its log is the only proof.
    assert_eq!(report["tsc"]["usable"], false);
    assert!(
        report["tsc"]["distrust"].to_string().contains("the kernel marked it unstable 500 s after boot"),
        "{report}"
    );
}

/// Kernels without sysfs name their clock source only in their log.
#[test]
fn clock_source_from_the_log_of_an_old_linux_and_of_freebsd() {
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    let report = |log: &str| {
        let mut command = pg_timing();
        command.args(["--root", root, "--kernel-log", "-", "--format", "json"]).write_stdin(log);
        let (_, stdout, stderr) = run(&mut command);
        assert_eq!(stderr, "");
        json(&stdout)
    };
    let old = report("time.c: Using 3.579545 MHz WALL PM GTOD PM timer.\n");
    assert_eq!(old["clocksource"]["current"], "acpi_pm");
    assert!(findings(&old).contains(&("clocksource-slow", "warning")), "{old}");
    let freebsd = report(
        "Timecounter \"HPET\" frequency 14318180 Hz quality 950\nTimecounter \"TSC\" frequency 2999990112 Hz quality -100\n",
    );
    assert_eq!(freebsd["clocksource"]["available"], json("[\"HPET\"]"));
    let story = freebsd["kernel"]["story"].to_string();
    assert!(
        story.contains("it found the timecounter TSC of 2999.990112 MHz with the quality -100, so it does not"),
        "{story}"
    );
}

/// A limit on the size of files, or a full disk: the new tree disappears, although the kernel sends a signal by default.
#[test]
fn failed_capture_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let script = "ulimit -f 0 && exec \"$@\"";
    let mut command = assert_cmd::Command::new("sh");
    let program = pg_timing();
    command.args(["-c", script, "sh"]).arg(program.get_program()).args(program.get_args());
    command.args(["check", "-d", "0.1", "--capture"]).arg(dir.path().join("tree"));
    let (status, _, stderr) = run(&mut command);
    assert!(status == 3 && stderr.contains("File too large"), "{status} {stderr}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
