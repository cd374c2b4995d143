//! Decides whether a program can use the counter.

use crate::{Features, Rate, Refused};

/// The kernel's clock sources, as sysfs names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelVerdict {
    /// name in `current_clocksource`
    pub current: String,
    /// names in `available_clocksource`
    pub available: Vec<String>,
}

/// The clock sources of Linux and the timecounters of FreeBSD that are the TSC itself.
const TSC: &[&str] = &["tsc", "tsc-early", "TSC", "TSC-low"];
/// The same for ARM's counter.
const ARM_COUNTER: &[&str] = &["arch_sys_counter", "ARM MPCore Timecounter"];
/// The clock sources that compute their time from the counter and a hypervisor's correction.
const CORRECTED: &[&str] = &["kvm-clock", "xen", "hyperv_clocksource_tsc_page", "kvmclock", "Hyper-V-TSC"];

/// Returns whether a clock source is the TSC itself, without a hypervisor's correction.
pub fn is_tsc(clocksource: &str) -> bool {
    TSC.contains(&clocksource)
}

/// Returns whether a clock source is the CPU's counter itself, without a hypervisor's correction.
pub fn is_counter(clocksource: &str) -> bool {
    is_tsc(clocksource) || ARM_COUNTER.contains(&clocksource)
}

/// Returns whether a clock source computes its time from the counter.
///
/// Such a clock cannot check the counter's rate independently.
pub fn is_counter_based(clocksource: &str) -> bool {
    is_counter(clocksource) || CORRECTED.contains(&clocksource)
}

impl KernelVerdict {
    /// Reads the clock sources of this host. `None` without sysfs.
    pub fn of_this_host() -> Option<KernelVerdict> {
        const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
        let read = |name: &str| std::fs::read_to_string(format!("{DIR}/{name}")).ok();
        Some(KernelVerdict::parse(&read("current_clocksource")?, &read("available_clocksource")?))
    }

    /// Parses the contents of `current_clocksource` and `available_clocksource`.
    pub fn parse(current: &str, available: &str) -> KernelVerdict {
        KernelVerdict {
            current: current.trim().into(),
            available: available.split_whitespace().map(Into::into).collect(),
        }
    }

    /// Returns whether the kernel's clock computes its time from the counter.
    pub fn uses_counter(&self) -> bool {
        is_counter_based(&self.current)
    }

    /// Returns whether the kernel uses the counter itself as its clock source, or offers it as one.
    ///
    /// A counter that the kernel marked unstable is missing in `available_clocksource`. kvm-clock and the Hyper-V page
    /// prove nothing, because they correct a bad counter.
    pub fn accepts_counter(&self) -> bool {
        std::iter::once(&self.current).chain(&self.available).any(|name| is_counter(name))
    }
}

/// A reason not to use the counter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distrust {
    /// This process or CPU cannot read the counter.
    Refused(Refused),
    /// CPUID does not report that the counter has the same rate in every power state.
    NotInvariant,
    /// The kernel marked the counter unstable, or never accepted it.
    Demoted {
        /// name of the clock source that the kernel uses
        current: String,
    },
    /// The counter's rate could not be measured. The text is the reason.
    RateUnknown(String),
}

impl core::fmt::Display for Distrust {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Distrust::Refused(why) => why.fmt(f),
            Distrust::NotInvariant => f.write_str("CPUID does not report a constant rate (no invariant TSC)"),
            Distrust::Demoted { current } => {
                write!(f, "the kernel does not offer it as a clock source and uses {current}")
            }
            Distrust::RateUnknown(why) => write!(f, "its rate is unknown: {why}"),
        }
    }
}

impl std::error::Error for Distrust {}

/// Returns every reason not to use the counter. If there is none, the counter is usable.
///
/// `kernel` is `None` if there is no sysfs. Then the kernel's opinion is not required. An unknown rate is reported only
/// if there is no other reason.
pub fn distrust(
    features: &Features,
    permission: Result<(), Refused>,
    kernel: Option<&KernelVerdict>,
    rate: &Result<Rate, String>,
) -> Vec<Distrust> {
    let mut reasons = Vec::new();
    if let Err(refused) = permission {
        reasons.push(Distrust::Refused(refused));
    }
    if !features.constant_rate() {
        reasons.push(Distrust::NotInvariant);
    }
    if let Some(kernel) = kernel.filter(|kernel| !kernel.accepts_counter()) {
        reasons.push(Distrust::Demoted { current: kernel.current.clone() });
    }
    if let (Err(why), true) = (rate, reasons.is_empty()) {
        reasons.push(Distrust::RateUnknown(why.clone()));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, Hertz, Nanos, Ppm};

    fn reasons(current: &str, available: &str, features: Features) -> Vec<Distrust> {
        let rate = Ok(Rate { rate: Hertz(2e9), uncertainty: Ppm(1.0), duration: Nanos(1e9) });
        distrust(&features, Ok(()), Some(&KernelVerdict::parse(current, available)), &rate)
    }

    fn good() -> Features {
        Features { architecture: Architecture::X86_64, rdtscp: true, invariant: true, ..Features::default() }
    }

    #[test]
    fn a_counter_that_the_kernel_uses_or_offers_is_trusted() {
        for (current, available) in [("tsc", "tsc hpet"), ("kvm-clock", "kvm-clock tsc"), ("hpet", "tsc hpet")] {
            assert_eq!(reasons(current, available, good()), [], "{current}; available: {available}");
        }
    }

    #[test]
    fn a_counter_that_the_kernel_does_not_offer_is_not_trusted() {
        for (current, available) in [("hpet", "hpet acpi_pm"), ("kvm-clock", "kvm-clock hpet"), ("xen", "xen")] {
            assert_eq!(reasons(current, available, good()), [Distrust::Demoted { current: current.into() }]);
        }
    }

    #[test]
    fn the_kernels_clock_uses_the_counter_directly_or_by_a_correction() {
        for (current, uses) in [
            ("tsc", true),
            ("kvm-clock", true),
            ("TSC-low", true),
            ("ARM MPCore Timecounter", true),
            ("hpet", false),
            ("", false),
        ] {
            assert_eq!(KernelVerdict::parse(current, "tsc").uses_counter(), uses, "{current}");
        }
        assert!(is_counter("tsc") && is_counter("arch_sys_counter") && !is_counter("kvm-clock"));
        assert!(is_tsc("TSC-low") && !is_tsc("arch_sys_counter") && !is_tsc("kvm-clock"));
    }

    #[test]
    fn names_are_separated_by_white_space() {
        let verdict = KernelVerdict::parse("tsc\n", "tsc hpet acpi_pm \n");
        assert_eq!((verdict.current.as_str(), verdict.available.join(",")), ("tsc", "tsc,hpet,acpi_pm".into()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_of_this_host_offers_its_current_clock_source() {
        let sysfs = std::path::Path::new("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let verdict = KernelVerdict::of_this_host();
        assert_eq!(verdict.is_some(), sysfs.exists());
        assert!(verdict.is_none_or(|verdict| verdict.available.contains(&verdict.current)));
    }

    #[test]
    fn each_reason_has_its_text() {
        assert_eq!(Distrust::Refused(Refused::NoInstruction("RDTSCP")).to_string(), "this CPU has no RDTSCP");
        assert_eq!(Distrust::NotInvariant.to_string(), "CPUID does not report a constant rate (no invariant TSC)");
        assert_eq!(
            Distrust::Demoted { current: "hpet".into() }.to_string(),
            "the kernel does not offer it as a clock source and uses hpet"
        );
        assert_eq!(Distrust::RateUnknown("x".into()).to_string(), "its rate is unknown: x");
    }

    #[test]
    fn each_reason_is_reported() {
        let not_invariant = Features { invariant: false, ..good() };
        assert_eq!(reasons("tsc", "tsc", not_invariant), [Distrust::NotInvariant]);
        let arm = Features { architecture: Architecture::Aarch64, ..Features::default() };
        assert_eq!(reasons("arch_sys_counter", "arch_sys_counter", arm), []);
        let unknown = Err("x".to_string());
        assert_eq!(distrust(&good(), Ok(()), None, &unknown), [Distrust::RateUnknown("x".into())]);
        assert_eq!(distrust(&good(), Err(Refused::Denied), None, &unknown), [Distrust::Refused(Refused::Denied)]);
    }
}
