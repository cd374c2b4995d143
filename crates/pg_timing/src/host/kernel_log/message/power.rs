//! Suspend and resume, and the restore of a virtual machine, which explain many later messages about clocks.

use super::Parsed;
use crate::host::kernel_log::event::Event;
use crate::host::kernel_log::scan::{skip, text};

pub(super) fn parse(message: &str) -> Option<Parsed> {
    let mut body = message;
    while let Some(rest) = ["PM:", "ACPI:", "printk:", "hibernation:"].iter().find_map(|prefix| skip(body, prefix)) {
        body = rest;
    }
    // The message of the driver of ACPI's VM generation id (vmgenid), since Linux 5.18.
    if skip(body, "random: crng reseeded due to virtual machine fork").is_some() {
        return Some(Event::MachineForked.into());
    }
    suspend(body).map(|state| Event::Suspend { state }).or_else(|| resume(body)).map(Parsed::from)
}

/// Returns the kind of sleep, if the message is about a suspend. The inner option is `None` if the kind is not printed.
fn suspend(body: &str) -> Option<Option<String>> {
    if let Some(rest) = skip(body, "suspend entry") {
        return Some(rest.trim().strip_prefix('(').and_then(|rest| text(rest.split_once(')')?.0)));
    }
    if let Some(state) = skip(body, "Preparing to enter system sleep state") {
        // S5 is power-off.
        let state = state.trim();
        return matches!(state, "S1" | "S2" | "S3" | "S4").then(|| Some(state.to_string()));
    }
    if skip(body, "hibernation entry").is_some() {
        return Some(Some("hibernation".into()));
    }
    // "Suspending console(s) (use no_console_suspend to debug)"
    let other = ["Suspending console", "suspend-to-idle"];
    other.iter().any(|words| skip(body, words).is_some()).then_some(None)
}

fn resume(body: &str) -> Option<Event> {
    if let Some(rest) = skip(body, "Timekeeping suspended for") {
        let number = rest.split_once("seconds").map(|(number, _)| number.trim());
        let slept_s = number.and_then(|number| number.parse().ok()).filter(|s: &f64| s.is_finite() && *s >= 0.0);
        return Some(Event::Resume { slept_s });
    }
    let words = [
        "Waking up from system sleep state",
        "suspend exit",
        "hibernation exit",
        "Finishing wakeup",
        "resume from suspend-to-idle",
        "resume devices took",
    ];
    words.iter().any(|words| skip(body, words).is_some()).then_some(Event::Resume { slept_s: None })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn suspends_are_parsed() {
        for (message, state) in [
            ("PM: suspend entry (deep)", Some("deep")),
            ("PM: suspend entry (s2idle)", Some("s2idle")),
            ("PM: suspend entry (de", None),
            ("PM: suspend entry 2018-03-01 10:00:00.123456789 UTC", None),
            ("Suspending console(s) (use no_console_suspend to debug)", None),
            ("printk: Suspending console(s) (use no_console_suspend to debug)", None),
            ("ACPI: PM: Preparing to enter system sleep state S3", Some("S3")),
            ("ACPI: Preparing to enter system sleep state S3", Some("S3")),
            ("PM: hibernation entry", Some("hibernation")),
            ("PM: hibernation: hibernation entry", Some("hibernation")),
        ] {
            let state = state.map(String::from);
            assert_eq!(parse(message), Some(Event::Suspend { state }.into()), "{message}");
        }
    }

    #[test]
    fn resumes_are_parsed() {
        for (message, slept_s) in [
            ("PM: suspend exit", None),
            ("ACPI: PM: Waking up from system sleep state S3", None),
            ("ACPI: Waking up from system sleep state S4", None),
            ("PM: Finishing wakeup.", None),
            ("PM: Timekeeping suspended for 3600.123 seconds", Some(3600.123)),
            ("Timekeeping suspended for 36", None),
            ("Timekeeping suspended for inf seconds", None),
        ] {
            assert_eq!(parse(message), Some(Event::Resume { slept_s }.into()), "{message}");
        }
    }
}
