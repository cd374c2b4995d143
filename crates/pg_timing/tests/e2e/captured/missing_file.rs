//! A tree that lacks one file.

use super::super::findings;
use super::{copy_tree, files, host, report};
use serde_json::Value;
use std::path::Path;

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

const MISSING_FILES: [MissingFile; 12] = [
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
    missing("pg_timing/ntp.json", 2, &["/host/ntp"], &[("wall-clock", "unknown")]),
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
        // The kernel log has it, too.
        &[],
        &[],
    ),
    missing("sys/devices/system/cpu/online", 2, &["/cpus/online"], &[]),
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
                    let mut names: Vec<_> = unavailable.map(|(key, _)| format!("/{section}/{key}")).collect();
                    names.sort();
                    names
                }
            }
        })
        .collect()
}
