//! `check --capture`: writes a tree for `--root`. The tree contains nothing that identifies the host.

use super::clocksource::{AVAILABLE_CLOCKSOURCE, CURRENT_CLOCKSOURCE};
use super::cpu::CapturedCpuid;
use super::platform::{ASSET_TAG, AZURE_TAG, GVISOR_VERSION};
use super::{Host, json_path};
use crate::report::{Fact, Measured, Report};
use anyhow::{Context, bail};
use std::path::Path;

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

/// Fields of the first CPU in /proc/cpuinfo that are copied. Other fields can identify the machine, as ARM's `Serial`.
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

/// Returns an error if no tree can be written to `dir`. It must not exist, or it must be an empty directory.
pub fn check_target(dir: &Path) -> anyhow::Result<()> {
    let taken = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if taken || dir.is_file() {
        bail!("\"{}\" exists and is not an empty directory", dir.display());
    }
    let named = dir.file_name().is_some();
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !named || !parent.is_dir() {
        bail!("cannot create the directory \"{}\"", dir.display());
    }
    Ok(())
}

/// Writes the facts of this machine, the lines about clocks in its kernel log, and the figures.
///
/// The tree appears complete or not at all: it is written next to `dir` and then renamed.
pub fn write(host: &Host, log: &[String], report: &Report, dir: &Path) -> anyhow::Result<()> {
    check_target(dir)?;
    let name = dir.file_name().with_context(|| format!("\"{}\" is not a directory name", dir.display()))?;
    let mut partial = name.to_os_string();
    partial.push(format!(".partial-{}", std::process::id()));
    let partial = dir.with_file_name(partial);
    let written = write_files(&files(host, log, report)?, &partial)
        .and_then(|()| std::fs::rename(&partial, dir))
        .map_err(|e| anyhow::anyhow!("could not write \"{}\": {}", dir.display(), crate::human::reason(&e)));
    if written.is_err() {
        _ = std::fs::remove_dir_all(&partial);
    }
    written
}

fn write_files(files: &Files, dir: &Path) -> std::io::Result<()> {
    for (path, text) in &files.0 {
        let file = dir.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap_or(dir))?;
        std::fs::write(&file, text)?;
    }
    Ok(())
}

/// The files of a tree: absolute path on the machine, and contents.
#[derive(Default)]
struct Files(Vec<(String, String)>);

impl Files {
    fn add(&mut self, path: &str, text: impl Into<String>) {
        self.0.push((path.into(), text.into()));
    }

    /// Adds a value that is in no file of the machine, as JSON.
    fn add_json(&mut self, name: &str, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.add(&json_path(name), serde_json::to_string_pretty(value).context("JSON")? + "\n");
        Ok(())
    }
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
        files.add_json("cpuid", &cpuid)?;
    }
    if let Fact::Known(ntp) = &report.host.ntp {
        files.add_json("ntp", ntp)?;
    }
    files.add_json("measured", &Measured::of(report))?;
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
    use super::first_cpu;

    #[test]
    fn the_first_cpu_is_copied_without_its_serial_number() {
        let text = "processor\t: 0\nmodel name\t: X\nSerial\t\t: 0000000012345678\n\nprocessor\t: 1\n";
        assert_eq!(first_cpu(text), "processor\t: 0\nmodel name\t: X\n");
    }
}
