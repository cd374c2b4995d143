//! The hardware that the kernel's clock stands on, as sysfs names it.

use super::Host;
use crate::report::{Clocksource, Fact};
use timing_clock::KernelVerdict;

/// Where Linux shows its clock sources.
pub const CLOCKSOURCE_DIR: &str = "/sys/devices/system/clocksource/clocksource0";
/// The file that names the one in use; a name written there switches to it.
pub const CURRENT_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The file that names those on offer.
pub const AVAILABLE_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

impl Host {
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

/// Whether it can be one: names are printed inside lines that people paste into a shell.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c))
}

impl Clocksource {
    /// What the kernel makes of the counter, if it says.
    pub fn verdict(&self) -> Option<KernelVerdict> {
        match (&self.current, &self.available) {
            (Fact::Known(current), Fact::Known(available)) => {
                Some(KernelVerdict { current: current.clone(), available: available.clone() })
            }
            _ => None,
        }
    }
}
