//! Parses single messages, in the wording of every kernel version.
//!
//! The beginning of a message identifies it, so a sentence that only quotes a message is not recognized.

mod clocksource;
mod power;
mod tsc;
mod watchdog;

use super::event::Event;
use super::scan::skip;

/// The event, or the part of an event, in a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parsed {
    /// the event, with the fields of this line
    pub event: Event,
    /// whether the event begins with this line; otherwise the line belongs to an earlier event
    pub begins: bool,
}

impl From<Event> for Parsed {
    fn from(event: Event) -> Parsed {
        Parsed { event, begins: true }
    }
}

impl Parsed {
    /// Returns a further line of an event.
    fn part(event: Event) -> Parsed {
        Parsed { event, begins: false }
    }
}

/// Returns the event in a message, if the message is about clocks.
pub(super) fn parse(message: &str) -> Option<Parsed> {
    // The prefix depends on the kernel version.
    let prefixes = ["clocksource:", "tsc:", "time.c:", "timekeeping:", "vmware:", "arch_timer:"];
    let body = prefixes.iter().find_map(|prefix| skip(message, prefix)).unwrap_or(message);
    clocksource::parse(message, body)
        .or_else(|| watchdog::parse(body))
        .or_else(|| tsc::parse(body))
        .or_else(|| power::parse(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_messages_are_ignored() {
        for other in [
            "",
            "x",
            "clocksource:",
            "tsc:",
            "'",
            "'tsc'",
            "CPU",
            "CPU0 is up",
            "CPUs",
            "Clocksource",
            "Marking",
            "Marking clocksource",
            "Watchdog",
            "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
            "timekeeping watchdog on CPU",
            "timekeeping watchdog on CPU2: x",
            "tsc: Fast TSC calibration using PIT",
            "tsc: Unable to calibrate against PIT",
            "tsc: Marking TSC async resets true due to reason",
            "TSC synchronization [CPU#0 -> CPU#1]: passed",
            "TSC ADJUST: CPU0: 12 NOT forced to 0",
            "ACPI: PM: Preparing to enter system sleep state S5",
            "Linux agpgart interface v0.103",
            "sched_clock: 56 bits at 24MHz, resolution 41ns, wraps every 4398046511097ns",
            "it says: Switched to clocksource hpet",
        ] {
            assert_eq!(parse(other), None, "{other:?}");
        }
    }
}
