//! The hardware that the kernel's clock stands on, as sysfs names it.

use super::Host;
use crate::report::{Clocksource, Fact};
use timing_clock::KernelVerdict;

/// Where Linux shows its clock sources.
pub const CLOCKSOURCE_DIR: &str = "/sys/devices/system/clocksource/clocksource0";
/// The file that names the one in use; a name written there switches to it.
pub const CURRENT_CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

impl Host {
    pub fn clocksource(&self) -> Clocksource {
        if let Some(sysctls) = self.sysctls() {
            return sysctls.clocksource();
        }
        Clocksource {
            current: self.read_line(CURRENT_CLOCKSOURCE),
            available: self
                .read_line(&format!("{CLOCKSOURCE_DIR}/available_clocksource"))
                .map(|names| names.split_whitespace().map(Into::into).collect()),
            before: None,
        }
    }
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
