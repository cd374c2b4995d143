//! The kernel's clock sources.

use super::{Host, clocksource_names};
use crate::report::{Clocksource, Fact};
use timing_clock::ClockSources;

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
            current: self
                .read_line(CURRENT_CLOCKSOURCE)
                .and_then(|name| clocksource_names::current(name, CURRENT_CLOCKSOURCE)),
            available: self
                .read_line(AVAILABLE_CLOCKSOURCE)
                .map(|names| clocksource_names::usable(names.split_whitespace())),
            before: None,
        }
    }
}

impl Clocksource {
    /// Returns the names of the kernel's clock sources, if they are known.
    pub fn names(&self) -> Option<ClockSources> {
        match (&self.current, &self.available) {
            (Fact::Known(current), Fact::Known(available)) => {
                Some(ClockSources::new(current.clone(), available.clone()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_and_the_number_of_names_are_limited() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::captured(root.path().into());
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(host.file(CLOCKSOURCE_DIR)).unwrap();
            std::fs::write(host.file(path), text).unwrap();
        };
        let long = "x".repeat(65_536);
        write(CURRENT_CLOCKSOURCE, &long);
        write(AVAILABLE_CLOCKSOURCE, &format!("{long} tsc {}", "hpet ".repeat(100_000)));
        let check = || {
            let clocksource = host.clocksource();
            assert!(clocksource.current.known().is_none());
            let available = clocksource.available.known().unwrap().clone();
            assert_eq!((available[0].as_str(), available.len()), ("tsc", 64));
        };
        check();
        let choice = format!("{long}(2000) tsc(1000) {}", "hpet(900) ".repeat(100_000));
        std::fs::write(
            root.path().join("sysctl"),
            format!("kern.timecounter.hardware: {long}\nkern.timecounter.choice: {choice}\n"),
        )
        .unwrap();
        check();
        assert!(host.sysctls().unwrap().refused().is_empty());
    }
}
