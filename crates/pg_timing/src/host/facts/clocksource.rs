//! The kernel's clock sources.

use super::Host;
use crate::report::{Clocksource, Fact};
use timing_clock::KernelVerdict;

/// The directory in which Linux shows its clock sources.
pub const CLOCKSOURCE_DIR: &str = "/sys/devices/system/clocksource/clocksource0";
/// The file with the current clock source. Writing a name to it switches the clock source.
pub const CURRENT_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The file with the available clock sources.
pub const AVAILABLE_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

impl Host {
    /// Returns the current and the available clock sources.
    pub fn clocksource(&self) -> Clocksource {
        if let Some(sysctls) = self.sysctls() {
            return sysctls.clocksource();
        }
        Clocksource {
            current: self.read_line(CURRENT_CLOCKSOURCE).and_then(|name| match is_name(&name) {
                true => Fact::Known(name),
                false => Fact::unavailable(format!("{CURRENT_CLOCKSOURCE}: not the name of a clock source")),
            }),
            available: self
                .read_line(AVAILABLE_CLOCKSOURCE)
                .map(|names| names.split_whitespace().filter(|name| is_name(name)).map(Into::into).collect()),
            before: None,
        }
    }
}

/// Returns whether this can be the name of a clock source. Names appear in commands that users paste into a shell.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c))
}

impl Clocksource {
    /// Returns the kernel's decision about the counter, if it is known.
    pub fn verdict(&self) -> Option<KernelVerdict> {
        match (&self.current, &self.available) {
            (Fact::Known(current), Fact::Known(available)) => {
                Some(KernelVerdict { current: current.clone(), available: available.clone() })
            }
            _ => None,
        }
    }
}
