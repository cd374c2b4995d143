//! The host's name, kernel, CPU and uptime.

use super::Host;
use super::proc_text::{cpuinfo_field, number_list};
use crate::report::{Fact, HostFacts};

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
            match cpuinfo_field(&text, "model name").or_else(|| cpuinfo_field(&text, "Model")) {
                Some(model) => Fact::Known(model.to_string()),
                None => Fact::unavailable("/proc/cpuinfo has no model name"),
            }
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
        self.read_line(path).and_then(|text| match text.split_whitespace().next().and_then(|s| s.parse().ok()) {
            Some(seconds) if f64::is_finite(seconds) && seconds >= 0.0 => Fact::Known(seconds),
            _ => Fact::unavailable(format!("{path}: not a number")),
        })
    }

    /// Returns the number of suspends since boot.
    pub fn suspends(&self) -> Fact<u64> {
        self.number_in("/sys/power/suspend_stats/success")
    }

    /// Returns the number in a file.
    fn number_in(&self, path: &str) -> Fact<u64> {
        self.read_line(path).and_then(|text| match text.parse() {
            Ok(number) => Fact::Known(number),
            Err(_) => Fact::unavailable(format!("{path}: not a number")),
        })
    }

    fn numa_nodes(&self) -> Fact<usize> {
        let path = "/sys/devices/system/node/online";
        self.read_line(path).and_then(|list| match number_list(&list) {
            Some(nodes) => Fact::Known(nodes.len()),
            None => Fact::unavailable(format!("{path}: not a list of nodes")),
        })
    }
}
