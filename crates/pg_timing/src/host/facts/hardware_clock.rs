//! The machine's hardware clock (RTC). In most virtual machines, it goes on while the hypervisor pauses the machine.

use super::Host;

impl Host {
    /// Returns the time of the hardware clock in whole seconds since 1970, if there is one.
    pub fn hardware_clock_s(&self) -> Option<u64> {
        self.read_line("/sys/class/rtc/rtc0/since_epoch").known()?.parse().ok()
    }
}
