//! Registration and selection of clock sources: kernel/time/clocksource.c.

use super::Parsed;
use crate::host::kernel_log::event::{Event, OverrideRefused, Timecounter};
use crate::host::kernel_log::scan::{hex, name, number, number_after, skip, skip_to};
use crate::host::kernel_log::skew;

/// Parses a message. `message` has the prefix that "clocksource tsc: mask: ..." needs; `body` is without it.
pub(super) fn parse(message: &str, body: &str) -> Option<Parsed> {
    registered(message)
        .or_else(|| switched(body))
        .or_else(|| refused(body))
        .or_else(|| timecounter(body))
        .map(Parsed::from)
}

/// `clocksource: tsc: mask: 0x... max_cycles: 0x..., max_idle_ns: N ns` (4.2 on; without the first colon before 4.5)
fn registered(message: &str) -> Option<Event> {
    let rest = skip(message, "clocksource")?;
    let (clocksource, rest) = name(rest.strip_prefix(':').unwrap_or(rest))?;
    let rest = skip(rest, "mask:")?;
    let cycles = skip_to(rest, "max_cycles:").and_then(|rest| hex(rest.split_whitespace().next()?));
    let mhz = skew::registered_mhz(cycles, number_after(rest, "max_idle_ns:"));
    Some(Event::Registered { clocksource, mhz })
}

/// `Switching to` up to 3.x; in 2.6.18 to 2.6.27 `Time: tsc clocksource has been installed.`
fn switched(body: &str) -> Option<Event> {
    if let Some((clocksource, rest)) = skip(body, "Time:").and_then(name) {
        skip(rest, "clocksource has been installed")?;
        return Some(Event::Switched { clocksource });
    }
    let rest = skip(body, "Switched to clocksource").or_else(|| skip(body, "Switching to clocksource"))?;
    name(rest).map(|(clocksource, _)| Event::Switched { clocksource })
}

/// `Override clocksource tsc is not HRT compatible. Cannot switch ...` (up to 4.8),
/// `... is unstable and not HRT compatible - cannot switch ...`, `... is not currently HRT compatible - deferring`
fn refused(body: &str) -> Option<Event> {
    let (clocksource, rest) = name(skip(body, "Override clocksource")?)?;
    let rest = skip(rest, "is")?;
    let unstable = skip(rest, "unstable").is_some();
    let deferred = skip(rest, "not currently").is_some();
    skip_to(rest, "HRT")?;
    Some(Event::OverrideRefused(OverrideRefused { clocksource, unstable, deferred }))
}

/// `Timecounter "TSC-low" frequency 1296049048 Hz quality 1000` (FreeBSD). A name can contain spaces.
fn timecounter(body: &str) -> Option<Event> {
    let (name, rest) = skip(body, "Timecounter \"")?.split_once('"')?;
    let plausible =
        (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c));
    let rest = skip(rest, "frequency").filter(|_| plausible)?;
    // The quality ends the line. If the line lost digits, the sign is still right, and only the sign matters.
    let quality = skip_to(rest, "Hz quality").and_then(|quality| quality.trim().parse().ok());
    Some(Event::Timecounter(Timecounter { name: name.into(), hz: number(rest).and_then(|(hz, _)| hz), quality }))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn event(message: &str) -> Event {
        parse(message).unwrap_or_else(|| panic!("{message}")).event
    }

    #[test]
    fn switches_are_parsed() {
        for (message, name) in [
            ("clocksource: Switched to clocksource hpet", "hpet"),
            ("Switched to clocksource tsc", "tsc"),
            ("Switching to clocksource hyperv_clocksource", "hyperv_clocksource"),
            ("Time: acpi_pm clocksource has been installed.", "acpi_pm"),
            ("clocksource:   Switched  to clocksource tsc-early  ", "tsc-early"),
        ] {
            assert_eq!(event(message), Event::Switched { clocksource: name.into() });
        }
        assert_eq!(parse("clocksource: Switched to clocksource hp"), None, "cut off");
        assert_eq!(parse("Time: 12:00:01  Date: 11/20/26"), None);
    }

    #[test]
    fn timecounters_are_parsed() {
        let timecounter = |message: &str| match event(message) {
            Event::Timecounter(timecounter) => (timecounter.name, timecounter.hz, timecounter.quality),
            other => panic!("{other:?}"),
        };
        for (message, name, hz, quality) in [
            (
                r#"Timecounter "TSC-low" frequency 1296049048 Hz quality 1000"#,
                "TSC-low",
                Some(1_296_049_048),
                Some(1000),
            ),
            (r#"Timecounter "TSC" frequency 2999990112 Hz quality -100"#, "TSC", Some(2_999_990_112), Some(-100)),
            (r#"Timecounter "ACPI-fast" frequency 3579545 Hz quality 900"#, "ACPI-fast", Some(3_579_545), Some(900)),
            (
                r#"Timecounter "ARM MPCore Timecounter" frequency 62500000 Hz quality 1000"#,
                "ARM MPCore Timecounter",
                Some(62_500_000),
                Some(1000),
            ),
            (r#"Timecounter "i8254" frequency 1193"#, "i8254", None, None),
        ] {
            assert_eq!(timecounter(message), (name.into(), hz, quality));
        }
        for other in [
            "Timecounters tick every 1.000 msec",
            "Timecounter",
            "Timecounter \"TSC",
            "Timecounter \"$(x)\" frequency 1 Hz",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn registrations_are_parsed() {
        for message in [
            "clocksource: hpet: mask: 0xffffffff max_cycles: 0xffffffff, max_idle_ns: 76450417870 ns",
            "clocksource hpet: mask: 0xffffffff max_cycles: 0xffffffff, max_idle_ns: 76450417870 ns",
        ] {
            let Event::Registered { clocksource, mhz: Some(mhz) } = event(message) else { panic!("{message}") };
            assert_eq!((clocksource.as_str(), format!("{mhz:.4}").as_str()), ("hpet", "25.0000"));
        }
        let none = |name: &str| Event::Registered { clocksource: name.into(), mhz: None };
        assert_eq!(event("clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x3"), none("tsc"), "cut off");
        assert_eq!(event("clocksource: x: mask: zz max_cycles: -1, max_idle_ns: -5 ns"), none("x"));
    }

    #[test]
    fn refused_overrides_are_parsed() {
        for (message, unstable, deferred) in [
            ("Override clocksource tsc is not HRT compatible. Cannot switch while in HRT/NOHZ mode", false, false),
            (
                "clocksource: Override clocksource tsc is unstable and not HRT compatible - cannot switch while in \
                 HRT/NOHZ mode",
                true,
                false,
            ),
            ("clocksource: Override clocksource tsc is not currently HRT compatible - deferring", false, true),
        ] {
            let clocksource = "tsc".into();
            assert_eq!(event(message), Event::OverrideRefused(OverrideRefused { clocksource, unstable, deferred }));
        }
    }
}
