//! The hypervisor, the cloud platform and the container.

use super::Host;
use crate::report::Fact;

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
        match self.features() {
            Fact::Known(features) if features.hypervisor => Fact::Known("an unknown hypervisor".into()),
            Fact::Known(_) if self.architecture().known().is_some_and(|arch| arch == "x86_64") => {
                Fact::Known("none".into())
            }
            Fact::Known(_) => Fact::unavailable("this CPU does not report a hypervisor"),
            Fact::Unavailable { unavailable } => Fact::Unavailable { unavailable },
        }
    }

    /// Returns the cloud platform.
    pub(super) fn platform(&self) -> Fact<String> {
        match self.by_product().and_then(|(_, platform)| platform).or_else(|| self.firecracker()) {
            Some(name) => Fact::Known(name.into()),
            None => Fact::unavailable("the firmware's tables are missing, unknown, or not readable for this user"),
        }
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

    /// Returns the kind of container, or "none".
    pub(super) fn container(&self) -> Fact<String> {
        if self.sysctls().is_some() {
            return Fact::unavailable("not available on FreeBSD");
        }
        let known = |path| self.read(path).known().is_some();
        if self.is_gvisor() {
            return Fact::Known("gvisor".into());
        }
        if known("/.dockerenv") {
            return Fact::Known("docker".into());
        }
        if known("/run/.containerenv") {
            return Fact::Known("podman".into());
        }
        if let Fact::Known(name) = self.read_line("/run/systemd/container") {
            return Fact::Known(name);
        }
        match self.read("/proc/1/cgroup") {
            Fact::Known(text) => {
                let kind = ["kubepods", "docker", "lxc"].into_iter().find(|kind| text.contains(kind));
                Fact::Known(kind.map_or("none", |kind| if kind == "kubepods" { "kubernetes" } else { kind }).into())
            }
            Fact::Unavailable { unavailable } => Fact::Unavailable { unavailable },
        }
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
