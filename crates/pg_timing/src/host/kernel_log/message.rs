//! Understands single messages, in the wording of every kernel version.
//!
//! A message is recognised by how it begins, so that a sentence which merely mentions one is not taken for it.

mod clocksource;
mod power;
mod tsc;
mod watchdog;

use super::event::Event;
use super::scan::skip;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    /// The event, as far as this line tells it
    pub event: Event,
    /// Whether the event begins with this line. Else it is a part of what earlier lines began.
    pub begins: bool,
}

impl From<Event> for Said {
    fn from(event: Event) -> Said {
        Said { event, begins: true }
    }
}

impl Said {
    /// A further line of an event.
    fn part(event: Event) -> Said {
        Said { event, begins: false }
    }
}

/// What the message says of clocks, if anything.
pub(super) fn understand(message: &str) -> Option<Said> {
    // Which of these stands there changed with the versions.
    let prefixes = ["clocksource:", "tsc:", "time.c:", "timekeeping:", "vmware:", "arch_timer:"];
    let body = prefixes.iter().find_map(|prefix| skip(message, prefix)).unwrap_or(message);
    clocksource::understand(message, body)
        .or_else(|| watchdog::understand(body))
        .or_else(|| tsc::understand(body))
        .or_else(|| power::understand(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_messages_say_nothing() {
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
            assert_eq!(understand(other), None, "{other:?}");
        }
    }
}
