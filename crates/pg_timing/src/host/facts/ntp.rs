//! NTP's adjustment of the kernel's clock.

use super::Host;
use crate::report::{Fact, Ntp};

impl Host {
    /// Returns the kernel's state of NTP, or the state in a captured tree.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if !self.is_live() {
            return self.captured_json("ntp");
        }
        // SAFETY: an all-zero timex is valid. modes = 0 reads the state and changes nothing.
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

    /// Returns the state in a captured tree. This system is not supported.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if self.is_live() { Fact::unavailable("available only on Linux") } else { self.captured_json("ntp") }
    }
}
