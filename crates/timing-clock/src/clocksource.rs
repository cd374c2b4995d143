//! The kernel's clock sources, by their names.

/// The kernel's clock sources, as sysfs names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockSources {
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

impl ClockSources {
    /// Reads the clock sources of this host. `None` without sysfs.
    pub fn of_this_host() -> Option<ClockSources> {
        const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
        let read = |name: &str| std::fs::read_to_string(format!("{DIR}/{name}")).ok();
        Some(ClockSources::parse(&read("current_clocksource")?, &read("available_clocksource")?))
    }

    /// Parses the contents of `current_clocksource` and `available_clocksource`.
    pub fn parse(current: &str, available: &str) -> ClockSources {
        let available = available.split_whitespace().map(Into::into).collect();
        ClockSources { current: current.trim().into(), available }
    }

    /// Returns whether the kernel's clock computes its time from the counter.
    ///
    /// Such a clock cannot check the counter's rate independently.
    pub fn uses_counter(&self) -> bool {
        is_counter(&self.current) || CORRECTED.contains(&self.current.as_str())
    }

    /// Returns whether the kernel uses the counter itself as its clock source, or offers it as one.
    ///
    /// A counter that the kernel marked unstable is missing in `available_clocksource`, unless the kernel runs with
    /// `highres=off nohz=off`. kvm-clock and the Hyper-V page prove nothing, because they correct a bad counter.
    pub fn accepts_counter(&self) -> bool {
        std::iter::once(&self.current).chain(&self.available).any(|name| is_counter(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(ClockSources::parse(current, "tsc").uses_counter(), uses, "{current}");
        }
        assert!(is_counter("tsc") && is_counter("arch_sys_counter") && !is_counter("kvm-clock"));
        assert!(is_tsc("TSC-low") && !is_tsc("arch_sys_counter") && !is_tsc("kvm-clock"));
    }

    #[test]
    fn names_are_separated_by_white_space() {
        let sources = ClockSources::parse("tsc\n", "tsc hpet acpi_pm \n");
        assert_eq!((sources.current.as_str(), sources.available.join(",")), ("tsc", "tsc,hpet,acpi_pm".into()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_of_this_host_offers_its_current_clock_source() {
        let sysfs = std::path::Path::new("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let sources = ClockSources::of_this_host();
        assert_eq!(sources.is_some(), sysfs.exists());
        assert!(sources.is_none_or(|sources| sources.available.contains(&sources.current)));
    }
}
