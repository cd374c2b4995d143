//! Names, versions and settings of the machine: kernel, CPU, hypervisor, container, boot parameters, NTP.

use super::Host;
use super::cpu::{cpuinfo_field, number_list};
use crate::report::{Fact, HostFacts, Ntp};

impl Host {
    /// Returns all facts about the host.
    pub fn facts(&self) -> HostFacts {
        HostFacts {
            name: self.name(),
            kernel: self.kernel(),
            architecture: self.architecture(),
            cpu_model: self.cpu_model(),
            virtualization: self.virtualization(),
            platform: self.platform(),
            container: self.container(),
            cpu_flags: self.cpu_flags(),
            boot_parameters: self.boot_parameters(),
            numa_nodes: self.numa_nodes(),
            suspends: self.suspends(),
            ntp: self.ntp(),
            uptime_seconds: self.uptime(),
        }
    }

    fn name(&self) -> Fact<String> {
        match self.sysctls() {
            Some(_) => Fact::unavailable("a captured tree does not contain the host name"),
            // Linux prints (none) if no name is set.
            None => self.read_line("/proc/sys/kernel/hostname").and_then(|name| match name.as_str() {
                "(none)" => Fact::unavailable("the host has no name"),
                _ => Fact::Known(name),
            }),
        }
    }

    fn kernel(&self) -> Fact<String> {
        if let Some(sysctls) = self.sysctls() {
            return sysctls.text("kern.osrelease").map(|release| format!("FreeBSD {release}"));
        }
        self.read_line("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}"))
    }

    fn cpu_model(&self) -> Fact<String> {
        if let Some(sysctls) = self.sysctls() {
            return sysctls.text("hw.model");
        }
        self.cpuinfo().and_then(|text| {
            let model = cpuinfo_field(&text, "model name").or_else(|| cpuinfo_field(&text, "Model"));
            Fact::of(model.map(Into::into), "/proc/cpuinfo has no model name")
        })
    }

    /// Returns the architecture. For a captured tree it follows from the fields of /proc/cpuinfo.
    pub fn architecture(&self) -> Fact<String> {
        if self.is_live() {
            return Fact::Known(std::env::consts::ARCH.into());
        }
        if let Some(sysctls) = self.sysctls() {
            return sysctls.text("hw.machine_arch").map(|arch| if arch == "amd64" { "x86_64".into() } else { arch });
        }
        self.cpuinfo().and_then(|text| {
            match (cpuinfo_field(&text, "vendor_id"), cpuinfo_field(&text, "CPU implementer")) {
                (Some(_), _) => Fact::Known("x86_64".into()),
                (None, Some(_)) => Fact::Known("aarch64".into()),
                (None, None) => Fact::unavailable("/proc/cpuinfo has neither vendor_id nor CPU implementer"),
            }
        })
    }

    /// Returns the kernel's description of the CPUs.
    pub fn cpuinfo(&self) -> Fact<String> {
        self.read("/proc/cpuinfo")
    }

    fn uptime(&self) -> Fact<f64> {
        let path = "/proc/uptime";
        self.read_line(path).and_then(|text| {
            let seconds = text.split_whitespace().next().and_then(|s| s.parse::<f64>().ok());
            Fact::of(seconds.filter(|s| s.is_finite() && *s >= 0.0), format!("{path}: not a number"))
        })
    }

    /// Returns the number of suspends since boot.
    pub fn suspends(&self) -> Fact<u64> {
        let path = "/sys/power/suspend_stats/success";
        self.read_line(path).and_then(|text| Fact::of(text.parse().ok(), format!("{path}: not a number")))
    }

    fn numa_nodes(&self) -> Fact<usize> {
        let path = "/sys/devices/system/node/online";
        let count = |list: String| number_list(&list).map(|nodes| nodes.len());
        self.read_line(path).and_then(|list| Fact::of(count(list), format!("{path}: not a list of nodes")))
    }
}

/// The file with the machine's asset tag.
pub const ASSET_TAG: &str = "/sys/class/dmi/id/chassis_asset_tag";
/// The asset tag of every Azure machine.
pub const AZURE_TAG: &str = "7783-7084-3265-9085-8269-3286-77";
/// gVisor's kernel version, which does not depend on the host.
pub const GVISOR_VERSION: &str = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016";

impl Host {
    /// Returns the name of the hypervisor, or "none".
    pub(super) fn virtualization(&self) -> Fact<String> {
        if self.is_gvisor() {
            return Fact::Known("gVisor".into());
        }
        if let Some(sysctls) = self.sysctls() {
            return sysctls.text("kern.vm_guest").map(|guest| hypervisor_name(&guest).to_string());
        }
        let signature = self.features().known().and_then(|features| features.hypervisor_signature.clone());
        let named = signature.as_deref().map(hypervisor_name).map(str::to_string);
        if let Some(name) = self.by_product().map(|(name, _)| name.to_string()).or(named).or_else(|| self.by_sysfs()) {
            return Fact::Known(name);
        }
        self.features().and_then(|features| match self.architecture().known().map(String::as_str) {
            _ if features.hypervisor => Fact::Known("an unknown hypervisor".into()),
            Some("x86_64") => Fact::Known("none".into()),
            _ => Fact::unavailable("this CPU does not report a hypervisor"),
        })
    }

    /// Returns the cloud platform.
    pub(super) fn platform(&self) -> Fact<String> {
        let platform = self.by_product().and_then(|(_, platform)| platform).or_else(|| self.firecracker());
        let why = "the firmware's tables are missing, unknown, or not readable for this user";
        Fact::of(platform.map(Into::into), why)
    }

    /// Returns hypervisor and platform from the product names in the firmware's tables.
    fn by_product(&self) -> Option<(&'static str, Option<&'static str>)> {
        let dmi =
            |name: &str| self.read_line(&format!("/sys/class/dmi/id/{name}")).known().cloned().unwrap_or_default();
        let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
        let xen = self.by_sysfs().is_some_and(|name| name == "Xen");
        Some(match (vendor.as_str(), product.as_str()) {
            ("Amazon EC2", name) if name.ends_with(".metal") || name.contains(".metal-") => {
                ("none", Some("AWS bare metal"))
            }
            ("Amazon EC2", _) => ("KVM", Some("AWS Nitro")),
            ("Xen", _) if dmi("bios_version").contains("amazon") => ("Xen", Some("AWS, Xen instance")),
            ("Google", _) => ("KVM", Some("Google Compute Engine")),
            ("Microsoft Corporation", "Virtual Machine") if dmi("chassis_asset_tag") == AZURE_TAG => {
                ("Hyper-V", Some("Azure"))
            }
            ("Microsoft Corporation", "Virtual Machine") => ("Hyper-V", None),
            ("VMware, Inc.", _) => ("VMware", None),
            ("innotek GmbH", _) | (_, "VirtualBox") => ("VirtualBox", None),
            ("Parallels Software International Inc.", _) => ("Parallels", None),
            _ if xen => ("Xen", None),
            _ => return None,
        })
    }

    /// Returns the hypervisor from sysfs, which shows only Xen.
    fn by_sysfs(&self) -> Option<String> {
        let kind = self.read_line("/sys/hypervisor/type");
        (kind.known()? == "xen").then(|| "Xen".to_string())
    }

    /// Returns the platform if it is Firecracker. It has no DMI, but root can read its name in an ACPI table.
    fn firecracker(&self) -> Option<&'static str> {
        let table = self.read("/sys/firmware/acpi/tables/DSDT");
        table.known()?.contains("FIRECK").then_some("Firecracker")
    }

    /// Returns whether this is gVisor, a kernel in user space whose facts are not those of the host.
    pub(super) fn is_gvisor(&self) -> bool {
        self.read("/proc/version").known().is_some_and(|text| text.starts_with(GVISOR_VERSION))
    }

    fn has(&self, path: &str) -> bool {
        self.read(path).known().is_some()
    }

    /// Returns the kind of container, or "none".
    pub(super) fn container(&self) -> Fact<String> {
        if self.sysctls().is_some() {
            return Fact::unavailable("not available on FreeBSD");
        }
        let signs = [
            ("gvisor", self.is_gvisor()),
            ("docker", self.has("/.dockerenv")),
            ("podman", self.has("/run/.containerenv")),
        ];
        if let Some((kind, _)) = signs.iter().find(|(_, found)| *found) {
            return Fact::Known((*kind).into());
        }
        if let Fact::Known(name) = self.read_line("/run/systemd/container") {
            return Fact::Known(name);
        }
        self.read("/proc/1/cgroup").map(|text| {
            let kinds = [("kubepods", "kubernetes"), ("docker", "docker"), ("lxc", "lxc")];
            kinds.iter().find(|(word, _)| text.contains(word)).map_or("none", |(_, kind)| kind).into()
        })
    }
}

/// Returns the hypervisor's name for a signature of CPUID leaf 0x40000000, or for FreeBSD's name. Unknown signatures
/// are returned unchanged.
fn hypervisor_name(signature: &str) -> &str {
    match signature {
        "KVMKVMKVM" | "Linux KVM Hv" | "kvm" => "KVM",
        "XenVMMXenVMM" | "xen" => "Xen",
        "Microsoft Hv" | "hv" => "Hyper-V",
        "VMwareVMware" | "vmware" => "VMware",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "VBoxVBoxVBox" => "VirtualBox",
        "bhyve bhyve" | "bhyve" => "bhyve",
        "prl hyperv" | "lrpepyh vr" => "Parallels",
        other => other,
    }
}

/// The names of these parameters, without `=` and the value. Other parameters are neither used nor captured, because a
/// command line can contain addresses and keys.
const ABOUT_CLOCKS: &str = "clocksource tsc notsc clock hpet nohpet acpi_pm acpi_pm_good pmtmr lpj no-kvmclock no-kvmclock-vsyscall \
    no-steal-acc nohz nohz_full highres idle intel_idle.max_cstate processor.max_cstate xen_timer_slop \
    tsc_early_khz clocksource.verify_n_cpus clocksource.max_cswd_read_retries";

impl Host {
    /// Returns the boot parameters that concern clocks.
    pub fn boot_parameters(&self) -> Fact<Vec<String>> {
        self.read("/proc/cmdline")
            .map(|line| line.split_whitespace().filter(|word| about_clocks(word)).map(Into::into).collect())
    }
}

/// Returns whether a boot parameter concerns clocks.
pub fn about_clocks(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    ABOUT_CLOCKS.split(' ').any(|known| known == name)
}

/// The microseconds between two ticks of the clock that user space sees (USER_HZ is 100).
#[cfg(any(target_os = "linux", target_os = "android"))]
const TICK_US: f64 = 10_000.0;

/// Returns the whole correction. `freq` is in units of 2^-16 ppm and at most 500 ppm; for more, chrony changes the tick.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn frequency_ppm(freq: f64, tick: f64) -> f64 {
    let ppm = freq / 65_536.0 + (tick - TICK_US) / TICK_US * 1e6;
    (ppm * 1000.0).round() / 1000.0
}

impl Host {
    /// Returns the kernel's state of NTP, or the state in a captured tree.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if !self.is_live() {
            return self.captured_json("ntp");
        }
        // SAFETY: an all-zero timex is valid. modes = 0 reads the state and changes nothing.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `timex` is writable.
        match unsafe { libc::adjtimex(&mut timex) } {
            -1 => Fact::unavailable(crate::human::reason(&std::io::Error::last_os_error())),
            state => Fact::Known(Ntp {
                synchronized: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
                frequency_ppm: frequency_ppm(timex.freq as f64, timex.tick as f64),
            }),
        }
    }

    /// Returns the state in a captured tree. This system is not supported.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if self.is_live() { Fact::unavailable("available only on Linux") } else { self.captured_json("ntp") }
    }
}

impl Host {
    /// Returns the time of the hardware clock in whole seconds since 1970, if there is one.
    pub fn hardware_clock_s(&self) -> Option<u64> {
        self.read_line("/sys/class/rtc/rtc0/since_epoch").known()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_about_clocks_are_kept() {
        for word in ["clocksource=tsc", "tsc=reliable", "notsc", "no-kvmclock"] {
            assert!(about_clocks(word), "{word}");
        }
        for word in ["root=UUID=1", "ip=10.0.0.1", "tscx=1", ""] {
            assert!(!about_clocks(word), "{word}");
        }
    }

    #[test]
    fn a_correction_by_the_tick_counts() {
        assert_eq!(frequency_ppm(65_536.0 * -12.5, 10_000.0), -12.5);
        assert_eq!(frequency_ppm(65_536.0 * -43.0, 9256.0), -74_443.0);
    }
}
