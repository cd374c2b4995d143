//! What NTP does to the kernel's clock.

use super::Host;
use crate::report::{Fact, Ntp};

impl Host {
    /// Asked of the kernel; of a captured tree, read from what was asked then.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if !self.is_live() {
            return self.captured_json("ntp");
        }
        // SAFETY: an all-zero timex is valid, and modes 0 asks without changing anything.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `timex` is writable.
        match unsafe { libc::adjtimex(&mut timex) } {
            -1 => Fact::unavailable(crate::human::reason(&std::io::Error::last_os_error())),
            state => Fact::Known(Ntp {
                synchronized: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
                // in units of 2^-16 ppm
                frequency_ppm: (timex.freq as f64 / 65_536.0 * 1000.0).round() / 1000.0,
            }),
        }
    }

    /// Not asked on this system.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if self.is_live() { Fact::unavailable("asked on Linux only") } else { self.captured_json("ntp") }
    }
}
