//! The host's name, kernel, CPU and hypervisor.

use super::Host;
use crate::report::{Fact, HostFacts};

impl Host {
    pub fn facts(&self) -> HostFacts {
        let cpuinfo = self.read("/proc/cpuinfo");
        HostFacts {
            name: self.read_line("/proc/sys/kernel/hostname"),
            kernel: self.read_line("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
            architecture: self.architecture(),
            cpu_model: match cpuinfo {
                Fact::Known(text) => field(&text, "model name")
                    .map(|model| Fact::Known(model.to_string()))
                    .unwrap_or_else(|| Fact::unavailable("/proc/cpuinfo does not name it")),
                Fact::Unavailable { unavailable } => Fact::unavailable(unavailable),
            },
            virtualization: self.virtualization(),
            uptime_seconds: self.uptime(),
        }
    }

    fn architecture(&self) -> Fact<String> {
        if self.is_live() {
            return Fact::Known(std::env::consts::ARCH.into());
        }
        // A captured tree tells it by how its CPUs are described.
        match self.read("/proc/cpuinfo") {
            Fact::Known(text) if field(&text, "vendor_id").is_some() => Fact::Known("x86_64".into()),
            Fact::Known(text) if field(&text, "CPU implementer").is_some() => Fact::Known("aarch64".into()),
            Fact::Known(_) => Fact::unavailable("/proc/cpuinfo does not tell"),
            Fact::Unavailable { unavailable } => Fact::unavailable(unavailable),
        }
    }

    fn uptime(&self) -> Fact<f64> {
        let path = "/proc/uptime";
        match self.read_line(path) {
            Fact::Known(text) => match text.split_whitespace().next().and_then(|s| s.parse().ok()) {
                Some(seconds) => Fact::Known(seconds),
                None => Fact::unavailable(format!("{path}: not a number")),
            },
            Fact::Unavailable { unavailable } => Fact::unavailable(unavailable),
        }
    }

    fn virtualization(&self) -> Fact<String> {
        let features = self.features();
        let Fact::Known(features) = features else {
            return Fact::unavailable("the CPU's features are unknown");
        };
        let dmi = self.read_line("/sys/class/dmi/id/sys_vendor");
        let maker = features.hypervisor_signature.as_deref().map(hypervisor_name);
        match (features.hypervisor, maker, dmi.known()) {
            (true, Some(name), _) => Fact::Known(name.to_string()),
            (true, None, Some(vendor)) => Fact::Known(format!("a hypervisor ({vendor})")),
            (true, None, None) => Fact::Known("a hypervisor".into()),
            (false, ..) if cfg!(target_arch = "x86_64") => Fact::Known("none".into()),
            (false, ..) => Fact::unavailable("this CPU does not tell"),
        }
    }
}

/// The hypervisor behind a signature of CPUID leaf 0x40000000; the signature itself if it is unknown.
fn hypervisor_name(signature: &str) -> &str {
    match signature {
        "KVMKVMKVM" => "KVM",
        "XenVMMXenVMM" => "Xen",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "VBoxVBoxVBox" => "VirtualBox",
        other => other,
    }
}

/// The first value of a field of /proc/cpuinfo.
pub fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}
