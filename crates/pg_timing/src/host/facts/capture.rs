//! `check --capture`: writes a tree for `--root`. The tree contains nothing that identifies the host.

pub use super::tree::Target;

use super::clocksource::{AVAILABLE_CLOCKSOURCE, CURRENT_CLOCKSOURCE};
use super::cpu::CapturedCpuid;
use super::machine::{ASSET_TAG, AZURE_TAG, GVISOR_VERSION};
use super::tree::Files;
use super::{Host, json_path};
use crate::report::{Fact, Measured, Report};
use anyhow::Context;

/// Files that contain only facts about clocks, CPUs and the kind of machine. They are copied whole.
const COPIED: &[&str] = &[
    "/proc/sys/kernel/osrelease",
    "/proc/uptime",
    CURRENT_CLOCKSOURCE,
    AVAILABLE_CLOCKSOURCE,
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/online",
    "/sys/power/suspend_stats/success",
    "/sys/hypervisor/type",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/bios_version",
    "/run/systemd/container",
];

/// Fields of the first CPU in /proc/cpuinfo that are copied. Other fields can identify the machine, like ARM's
/// `Serial`.
const CPUINFO: &[&str] = &[
    "processor",
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "bogomips",
    "BogoMIPS",
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
];

/// Writes the facts of this machine, the lines about clocks in its kernel log, and the figures.
pub fn write(host: &Host, log: &[String], report: &Report, target: &Target) -> anyhow::Result<()> {
    Ok(target.write(&files(host, log, report)?)?)
}

/// Adds a value that is in no file of the machine, as JSON.
fn add_json(files: &mut Files, name: &str, value: &impl serde::Serialize) -> anyhow::Result<()> {
    files.add(&json_path(name), serde_json::to_string_pretty(value).context("JSON")? + "\n");
    Ok(())
}

/// Returns the files of the tree.
fn files(host: &Host, log: &[String], report: &Report) -> anyhow::Result<Files> {
    let mut files = Files::default();
    for path in COPIED {
        if let Fact::Known(text) = host.read(path) {
            files.add(path, text);
        }
    }
    if let Fact::Known(text) = host.cpuinfo() {
        files.add("/proc/cpuinfo", first_cpu(&text));
    }
    if let Fact::Known(parameters) = host.boot_parameters() {
        files.add("/proc/cmdline", parameters.join(" ") + "\n");
    }
    // Some files can identify the machine. Of these, only the part that is equal on all machines is written.
    if host.read_line(ASSET_TAG) == Fact::Known(AZURE_TAG.into()) {
        files.add(ASSET_TAG, format!("{AZURE_TAG}\n"));
    }
    if host.is_gvisor() {
        files.add("/proc/version", format!("{GVISOR_VERSION}\n"));
    }
    if report.host.platform == Fact::Known("Firecracker".into()) {
        files.add("/sys/firmware/acpi/tables/DSDT", "FIRECK\n");
    }
    match report.host.container.known().map(String::as_str) {
        Some("docker") => files.add("/.dockerenv", ""),
        Some("podman") => files.add("/run/.containerenv", ""),
        Some("kubernetes") => files.add("/proc/1/cgroup", "0::/kubepods\n"),
        Some("lxc") => files.add("/proc/1/cgroup", "0::/lxc\n"),
        Some("none") => files.add("/proc/1/cgroup", "0::/\n"),
        _ => {}
    }
    if !log.is_empty() {
        files.add("/var/log/dmesg", log.join("\n") + "\n");
    }
    if let Fact::Known(features) = host.features() {
        let cpuid = CapturedCpuid {
            hypervisor_signature: features.hypervisor_signature,
            leaf_15_hz: features.leaf_15_hz,
            leaf_16_hz: features.leaf_16_hz,
            hypervisor_hz: features.hypervisor_hz,
        };
        add_json(&mut files, "cpuid", &cpuid)?;
    }
    if let Fact::Known(ntp) = &report.host.ntp {
        add_json(&mut files, "ntp", ntp)?;
    }
    add_json(&mut files, "measured", &Measured::of(report))?;
    Ok(files)
}

/// Returns the first CPU's block of /proc/cpuinfo, with the copied fields.
fn first_cpu(cpuinfo: &str) -> String {
    let block = cpuinfo.lines().take_while(|line| !line.trim().is_empty());
    let kept = block.filter(|line| line.split_once(':').is_some_and(|(key, _)| CPUINFO.contains(&key.trim())));
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cpu_is_copied_without_its_serial_number() {
        let text = "processor\t: 0\nmodel name\t: X\nSerial\t\t: 0000000012345678\n\nprocessor\t: 1\n";
        assert_eq!(first_cpu(text), "processor\t: 0\nmodel name\t: X\n");
    }
}
