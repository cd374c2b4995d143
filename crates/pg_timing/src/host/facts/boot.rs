//! The kernel's boot parameters that concern clocks.

use super::Host;
use crate::report::Fact;

/// The names of these parameters, without `=` and the value. Other parameters are neither used nor captured, because a
/// command line can contain addresses and keys.
const ABOUT_CLOCKS: &[&str] = &[
    "clocksource",
    "tsc",
    "notsc",
    "clock",
    "hpet",
    "nohpet",
    "acpi_pm",
    "acpi_pm_good",
    "pmtmr",
    "lpj",
    "no-kvmclock",
    "no-kvmclock-vsyscall",
    "no-steal-acc",
    "nohz",
    "nohz_full",
    "highres",
    "idle",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "xen_timer_slop",
    "tsc_early_khz",
    "clocksource.verify_n_cpus",
    "clocksource.max_cswd_read_retries",
];

impl Host {
    /// Returns the boot parameters that concern clocks.
    pub fn boot_parameters(&self) -> Fact<Vec<String>> {
        self.read("/proc/cmdline")
            .map(|line| line.split_whitespace().filter(|word| about_clocks(word)).map(Into::into).collect())
    }
}

/// Returns whether a boot parameter concerns clocks.
pub fn about_clocks(word: &str) -> bool {
    ABOUT_CLOCKS.contains(&word.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::about_clocks;

    #[test]
    fn only_parameters_about_clocks_are_kept() {
        for word in ["clocksource=tsc", "tsc=reliable", "notsc", "no-kvmclock"] {
            assert!(about_clocks(word), "{word}");
        }
        for word in ["root=UUID=1", "ip=10.0.0.1", "tscx=1", ""] {
            assert!(!about_clocks(word), "{word}");
        }
    }
}
