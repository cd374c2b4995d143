//! Decides whether a program can use the counter.

use crate::{ClockSources, Features, RateError, Refused};

/// A reason not to use the counter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distrust {
    /// This thread may not read the counter, or the CPU has no instruction for it.
    Refused(Refused),
    /// CPUID does not report that the counter has the same rate in every power state.
    NotInvariant,
    /// The kernel marked the counter unstable, or never accepted it.
    Demoted {
        /// name of the clock source that the kernel uses
        current: String,
    },
    /// The counter's rate could not be measured.
    RateUnknown(RateError),
}

impl core::fmt::Display for Distrust {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Distrust::Refused(why) => why.fmt(f),
            Distrust::NotInvariant => f.write_str("CPUID does not report a constant rate (no invariant TSC)"),
            Distrust::Demoted { current } => {
                write!(f, "the kernel does not offer the counter as a clock source and uses {current}")
            }
            Distrust::RateUnknown(why) => write!(f, "the counter's rate is unknown: {why}"),
        }
    }
}

impl std::error::Error for Distrust {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Distrust::Refused(why) => Some(why),
            Distrust::RateUnknown(why) => Some(why),
            Distrust::NotInvariant | Distrust::Demoted { .. } => None,
        }
    }
}

/// Returns every reason not to use the counter that is known without reading it. If there is none, the counter is usable,
/// provided that its [rate can be measured](crate::measure_rate).
///
/// `kernel` is `None` if there is no sysfs. Then the kernel's opinion is not required.
pub fn distrust(features: &Features, permission: Result<(), Refused>, kernel: Option<&ClockSources>) -> Vec<Distrust> {
    let mut reasons = Vec::new();
    if let Err(refused) = permission {
        reasons.push(Distrust::Refused(refused));
    }
    if !features.constant_rate() {
        reasons.push(Distrust::NotInvariant);
    }
    reasons.extend(kernel.and_then(demoted));
    reasons
}

/// Returns a reason if the kernel does not accept the counter as a clock source.
pub(crate) fn demoted(kernel: &ClockSources) -> Option<Distrust> {
    (!kernel.accepts_counter()).then(|| Distrust::Demoted { current: kernel.current.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Architecture;
    use std::error::Error;

    fn reasons(current: &str, available: &str, features: Features) -> Vec<Distrust> {
        distrust(&features, Ok(()), Some(&ClockSources::parse(current, available)))
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
    fn each_reason_has_its_text() {
        assert_eq!(Distrust::Refused(Refused::NoInstruction("RDTSCP")).to_string(), "this CPU has no RDTSCP");
        assert_eq!(Distrust::NotInvariant.to_string(), "CPUID does not report a constant rate (no invariant TSC)");
        assert_eq!(
            Distrust::Demoted { current: "hpet".into() }.to_string(),
            "the kernel does not offer the counter as a clock source and uses hpet"
        );
        let unknown = Distrust::RateUnknown(RateError::WentBack);
        assert_eq!(unknown.to_string(), "the counter's rate is unknown: the counter went back");
        assert_eq!(unknown.source().map(ToString::to_string).as_deref(), Some("the counter went back"));
        assert!(Distrust::Refused(Refused::Denied).source().is_some() && Distrust::NotInvariant.source().is_none());
    }

    #[test]
    fn each_reason_is_reported() {
        let not_invariant = Features { invariant: false, ..good() };
        assert_eq!(reasons("tsc", "tsc", not_invariant), [Distrust::NotInvariant]);
        let arm = Features { architecture: Architecture::Aarch64, ..Features::default() };
        assert_eq!(reasons("arch_sys_counter", "arch_sys_counter", arm), []);
        assert_eq!(distrust(&good(), Ok(()), None), []);
        assert_eq!(distrust(&good(), Err(Refused::Denied), None), [Distrust::Refused(Refused::Denied)]);
    }
}
