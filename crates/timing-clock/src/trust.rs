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

/// Clock sources whose time is made out of the counter, so that the kernel itself trusts it.
///
/// Also the list behind "independent": a clock that stands on the counter cannot check it.
pub const ON_THE_COUNTER: &[&str] =
    &["tsc", "tsc-early", "kvm-clock", "xen", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

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

    /// Whether the kernel would itself use the counter: it does, or offers to.
    ///
    /// A counter marked unstable loses its place in `available_clocksource`.
    pub fn accepts_counter(&self) -> bool {
        let own = if cfg!(target_arch = "aarch64") { "arch_sys_counter" } else { "tsc" };
        self.stands_on_counter() || self.available.iter().any(|name| name == own)
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
    // AArch64's architecture promises what x86 has to claim bit by bit.
    if cfg!(target_arch = "x86_64") && !features.invariant {
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
