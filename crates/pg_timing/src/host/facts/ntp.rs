//! NTP's adjustment of the kernel's clock.

use super::Host;
use crate::report::{Fact, Ntp};

/// The microseconds between two ticks of the clock that user space sees (USER_HZ is 100).
#[cfg(any(target_os = "linux", target_os = "android"))]
const TICK_US: f64 = 10_000.0;

/// Returns the whole correction. `freq` is in units of 2^-16 ppm and at most 500 ppm; for more, chrony changes the tick.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn frequency_ppm(freq: f64, tick: f64) -> f64 {
    let ppm = freq / 65_536.0 + (tick - TICK_US) / TICK_US * 1e6;
    (ppm * 1000.0).round() / 1000.0
}

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
                frequency_ppm: frequency_ppm(timex.freq as f64, timex.tick as f64),
            }),
        }
    }

    /// Returns the state in a captured tree. This system is not supported.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn ntp(&self) -> Fact<Ntp> {
        if self.is_live() { Fact::unavailable("available only on Linux") } else { self.captured_json("ntp") }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::frequency_ppm;

    #[test]
    fn a_correction_by_the_tick_counts() {
        assert_eq!(frequency_ppm(65_536.0 * -12.5, 10_000.0), -12.5);
        assert_eq!(frequency_ppm(65_536.0 * -43.0, 9256.0), -74_443.0);
    }
}
