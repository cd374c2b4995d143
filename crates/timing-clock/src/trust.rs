//! Whether to time with the counter: our answer, and PostgreSQL 19's.

use crate::{Features, Rate, Refused};

/// What the kernel does with the counter, in sysfs's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelVerdict {
    /// `current_clocksource`
    pub current: String,
    /// `available_clocksource`
    pub available: Vec<String>,
}

/// The clock sources that are the counter itself: on Linux, and FreeBSD's timecounters.
const COUNTERS: &[&str] = &["tsc", "tsc-early", "arch_sys_counter", "TSC", "TSC-low", "ARM MPCore Timecounter"];

/// Clock sources whose time is made out of the counter, so that the kernel itself trusts it.
///
/// Also the list behind "independent": a clock that stands on the counter cannot check it.
pub const ON_THE_COUNTER: &[&str] = &[
    "tsc",
    "tsc-early",
    "kvm-clock",
    "xen",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "TSC",
    "TSC-low",
    "kvmclock",
    "Hyper-V-TSC",
];

/// Whether a clock source is the counter itself, as CPUs have it, with nothing in between.
pub fn is_counter(clocksource: &str) -> bool {
    COUNTERS.contains(&clocksource)
}

impl KernelVerdict {
    /// What this kernel says. `None` without sysfs.
    pub fn of_this_host() -> Option<KernelVerdict> {
        const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
        let read = |name: &str| std::fs::read_to_string(format!("{DIR}/{name}")).ok();
        Some(KernelVerdict::parse(&read("current_clocksource")?, &read("available_clocksource")?))
    }

    /// From the contents of the two files.
    pub fn parse(current: &str, available: &str) -> KernelVerdict {
        KernelVerdict {
            current: current.trim().into(),
            available: available.split_whitespace().map(Into::into).collect(),
        }
    }

    /// Whether the kernel's clock stands on the counter.
    pub fn stands_on_counter(&self) -> bool {
        ON_THE_COUNTER.contains(&self.current.as_str())
    }

    /// Whether the kernel would itself use the bare counter: it does, or offers to.
    ///
    /// A counter marked unstable loses its place in `available_clocksource`. That the kernel keeps
    /// time by kvm-clock or the Hyper-V page is no acceptance: those correct a bad counter.
    pub fn accepts_counter(&self) -> bool {
        std::iter::once(&self.current).chain(&self.available).any(|name| is_counter(name))
    }
}

/// One reason not to time with the counter.
#[derive(Clone, Debug, PartialEq)]
pub enum Distrust {
    /// It cannot be read.
    Refused(Refused),
    /// CPUID does not say that its rate stays the same in every power state.
    NotInvariant,
    /// The kernel has marked it unstable or never accepted it; it keeps time by the named source.
    Demoted {
        /// `current_clocksource`
        current: String,
    },
    /// Its rate could not be measured.
    RateUnknown(String),
}

impl core::fmt::Display for Distrust {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Distrust::Refused(why) => why.fmt(f),
            Distrust::NotInvariant => f.write_str("CPUID does not say that its rate is constant (no invariant TSC)"),
            Distrust::Demoted { current } => {
                write!(f, "the kernel does not offer it as a clock source and keeps time by {current}")
            }
            Distrust::RateUnknown(why) => write!(f, "its rate is unknown: {why}"),
        }
    }
}

impl std::error::Error for Distrust {}

/// Every reason not to time with the counter here. Empty: it is usable.
///
/// `kernel` is `None` where the kernel does not say (no sysfs): then its word is not waited for.
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
        let rate = Ok(Rate { rate: Hertz(2e9), uncertainty: Ppm(1.0), over: Nanos(1e9) });
        distrust(&features, Ok(()), Some(&KernelVerdict::parse(current, available)), &rate)
    }

    fn good() -> Features {
        Features { architecture: Architecture::X86_64, rdtscp: true, invariant: true, ..Features::default() }
    }

    #[test]
    fn a_counter_that_is_used_or_offered_is_trusted() {
        for (current, available) in [("tsc", "tsc hpet"), ("kvm-clock", "kvm-clock tsc"), ("hpet", "tsc hpet")] {
            assert_eq!(reasons(current, available, good()), [], "{current} of {available}");
        }
    }

    #[test]
    fn one_that_the_kernel_gave_up_is_not_even_behind_kvm_clock() {
        for (current, available) in [("hpet", "hpet acpi_pm"), ("kvm-clock", "kvm-clock hpet"), ("xen", "xen")] {
            assert_eq!(reasons(current, available, good()), [Distrust::Demoted { current: current.into() }]);
        }
    }

    #[test]
    fn the_other_reasons() {
        let bare = Features { invariant: false, ..good() };
        assert_eq!(reasons("tsc", "tsc", bare), [Distrust::NotInvariant]);
        let arm = Features { architecture: Architecture::Aarch64, ..Features::default() };
        assert_eq!(reasons("arch_sys_counter", "arch_sys_counter", arm), []);
        let unknown = Err("x".to_string());
        assert_eq!(distrust(&good(), Ok(()), None, &unknown), [Distrust::RateUnknown("x".into())]);
        assert_eq!(distrust(&good(), Err(Refused::Denied), None, &unknown), [Distrust::Refused(Refused::Denied)]);
    }
}
