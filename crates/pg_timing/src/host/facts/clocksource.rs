//! The kernel's clock sources: in sysfs on Linux, and FreeBSD's sysctl values, which it has instead of /proc and /sys.

use super::Host;
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
            current: self.read_line(CURRENT_CLOCKSOURCE).and_then(|name| current_name(name, CURRENT_CLOCKSOURCE)),
            available: self.read_line(AVAILABLE_CLOCKSOURCE).map(|names| usable_names(names.split_whitespace())),
            before: None,
        }
    }
}

impl Clocksource {
    /// Returns the names of the kernel's clock sources, if they are known.
    pub fn names(&self) -> Option<ClockSources> {
        Some(ClockSources::new(self.current.known()?.clone(), self.available.known()?.clone()))
    }
}

/// Linux allows 31 characters.
const MAX_LENGTH: usize = 64;
const MAX_NAMES: usize = 64;

/// Returns the name of the current clock source. `place` is where it was read.
fn current_name(name: String, place: &str) -> Fact<String> {
    Fact::of(is_name(&name).then_some(name), format!("{place}: not the name of a clock source"))
}

/// Returns the names that can be the name of a clock source. A kernel has fewer than ten.
fn usable_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.filter(|name| is_name(name)).take(MAX_NAMES).map(Into::into).collect()
}

/// Returns whether this can be the name of a clock source. Names appear in commands that users paste into a shell.
fn is_name(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c))
}

const CURRENT: &str = "kern.timecounter.hardware";

/// The values that are read.
#[cfg(target_os = "freebsd")]
const NAMES: &[&str] = &[
    "kern.osrelease",
    "kern.vm_guest",
    "hw.model",
    "hw.machine_arch",
    "kern.timecounter.hardware",
    "kern.timecounter.choice",
    "kern.timecounter.smp_tsc",
    "kern.timecounter.invariant_tsc",
    "machdep.tsc_freq",
];

/// Names and values in the format of `sysctl NAME ...`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sysctls(Vec<(String, String)>);

impl Sysctls {
    /// Parses lines of `name: value`.
    pub fn parse(text: &str) -> Sysctls {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Sysctls(pairs.map(|(name, value)| (name.trim().into(), value.trim().into())).collect())
    }

    /// Returns the values of this machine.
    #[cfg(target_os = "freebsd")]
    pub fn live() -> Option<Sysctls> {
        let pair = |name: &&str| read(name).map(|value| (name.to_string(), value));
        Some(Sysctls(NAMES.iter().filter_map(pair).collect()))
    }

    /// Returns `None`, because this system has no such values.
    #[cfg(not(target_os = "freebsd"))]
    pub fn live() -> Option<Sysctls> {
        None
    }

    /// Returns a value as text.
    pub fn text(&self, name: &str) -> Fact<String> {
        let found = self.0.iter().find(|(known, value)| known == name && !value.is_empty());
        Fact::of(found.map(|(_, value)| value.clone()), format!("sysctl {name}: missing"))
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.text(name).known()?.parse().ok().filter(|n| *n > 0.0)
    }

    /// Returns the counter's rate in hertz.
    pub fn tsc_hz(&self) -> Option<f64> {
        self.number("machdep.tsc_freq")
    }

    /// Returns whether the counter has a constant rate.
    pub fn invariant_tsc(&self) -> bool {
        self.number("kern.timecounter.invariant_tsc").is_some()
    }

    /// Returns the timecounters. The kernel never selects one with a negative quality.
    pub fn clocksource(&self) -> Clocksource {
        Clocksource {
            current: self.text(CURRENT).and_then(|name| current_name(name, CURRENT)),
            available: self.text("kern.timecounter.choice").map(|choice| selectable(&choice)),
            before: None,
        }
    }

    /// Returns the timecounters with a negative quality, without the dummy, which never moves.
    pub fn refused(&self) -> Vec<String> {
        let choice = self.text("kern.timecounter.choice").known().cloned().unwrap_or_default();
        let choices = choices(&choice);
        let refused = choices.iter().filter(|(quality, name)| *quality < 0 && *name != "dummy");
        usable_names(refused.map(|(_, name)| *name))
    }
}

/// Parses `TSC-low(1000) HPET(950) i8254(0) dummy(-1000000)` to qualities and names, best first. A name can contain
/// spaces.
fn choices(choice: &str) -> Vec<(i64, &str)> {
    let mut named: Vec<(i64, &str)> = choice
        .split(')')
        .filter_map(|item| {
            let (name, quality) = item.rsplit_once('(')?;
            Some((quality.trim().parse().ok()?, name.trim()))
        })
        .collect();
    named.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
    named
}

/// Returns the timecounters that the kernel can select, best first.
fn selectable(choice: &str) -> Vec<String> {
    usable_names(choices(choice).iter().filter(|(quality, _)| *quality >= 0).map(|(_, name)| *name))
}

impl Host {
    /// Returns FreeBSD's values, if this is FreeBSD or a tree captured there.
    pub fn sysctls(&self) -> Option<Sysctls> {
        match self.is_live() {
            true => Sysctls::live(),
            false => self.read("/sysctl").known().map(|text| Sysctls::parse(text)),
        }
    }
}

/// Reads one value: a string, or an integer of 4 or 8 bytes.
#[cfg(target_os = "freebsd")]
fn read(name: &str) -> Option<String> {
    let name = std::ffi::CString::new(name).ok()?;
    let mut value = [0u8; 1024];
    let mut length = value.len();
    // SAFETY: `value` is writable for `length` bytes, which the call updates.
    let rc = unsafe { libc::sysctlbyname(name.as_ptr(), value.as_mut_ptr().cast(), &mut length, std::ptr::null(), 0) };
    let bytes = value.get(..length).filter(|_| rc == 0)?;
    let is_text =
        bytes.last() == Some(&0) && bytes[..bytes.len() - 1].iter().all(|b| b.is_ascii_graphic() || *b == b' ');
    Some(match bytes.len() {
        4 if !is_text => i32::from_ne_bytes(bytes.try_into().ok()?).to_string(),
        8 if !is_text => u64::from_ne_bytes(bytes.try_into().ok()?).to_string(),
        _ => String::from_utf8_lossy(bytes).trim_end_matches('\0').trim().to_string(),
    })
}

/// Switches FreeBSD to another timecounter.
#[cfg(target_os = "freebsd")]
pub fn set_timecounter(name: &str) -> std::io::Result<()> {
    let value = std::ffi::CString::new(name).map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    let (setting, nothing) = (c"kern.timecounter.hardware".as_ptr(), std::ptr::null_mut());
    let length = value.as_bytes().len();
    // SAFETY: no old value is requested, and the new one is readable for its length.
    let rc = unsafe { libc::sysctlbyname(setting, nothing, std::ptr::null_mut(), value.as_ptr().cast(), length) };
    if rc == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Returns an error, because this system is not FreeBSD.
#[cfg(not(target_os = "freebsd"))]
pub fn set_timecounter(_name: &str) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
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

    #[test]
    fn timecounters_are_listed_best_first_without_negative_qualities() {
        let sysctls = Sysctls::parse(
            "kern.timecounter.choice: ACPI-fast(900) HPET(950) TSC-low(-100) i8254(0) dummy(-1000000)\n\
             kern.timecounter.hardware: HPET\nmachdep.tsc_freq: 2400000000\n",
        );
        let clocksource = sysctls.clocksource();
        assert_eq!(clocksource.available.known().unwrap(), &["HPET", "ACPI-fast", "i8254"]);
        assert_eq!(clocksource.current.known().unwrap(), "HPET");
        assert_eq!(sysctls.refused(), ["TSC-low"]);
        assert_eq!(sysctls.tsc_hz(), Some(2.4e9));
        assert!(!sysctls.invariant_tsc());
    }

    #[test]
    fn a_timecounter_name_can_contain_spaces() {
        let sysctls = Sysctls::parse("kern.timecounter.choice: ARM MPCore Timecounter(1000) dummy(-1000000)\n");
        assert_eq!(sysctls.clocksource().available.known().unwrap(), &["ARM MPCore Timecounter"]);
        assert_eq!(sysctls.refused(), [""; 0]);
    }
}
