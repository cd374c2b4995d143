//! What checks ask a kernel log.
//!
//! The answers are about the last boot that the log shows: a journal can hold several.

use super::demotion::{self, Demotion};
use super::event::{Event, FirmwareBug, OverrideRefused, Rate};
use super::{Entry, KernelClockLog};

impl KernelClockLog {
    /// The entries since the last boot.
    pub fn this_boot(&self) -> &[Entry] {
        let boot = self.entries.iter().rposition(|entry| matches!(entry.event, Event::Boot { .. }));
        &self.entries[boot.unwrap_or(0)..]
    }

    /// The last time that the TSC was marked unstable.
    pub fn demotion(&self) -> Option<Demotion> {
        demotion::last(self.this_boot())
    }

    /// The clock sources taken, with the time.
    pub fn switches(&self) -> impl Iterator<Item = (Option<f64>, &str)> {
        self.this_boot().iter().filter_map(|entry| match &entry.event {
            Event::Switched { clocksource } => Some((entry.seconds, clocksource.as_str())),
            _ => None,
        })
    }

    /// The rates that the kernel named, in its order.
    pub fn rates(&self) -> impl Iterator<Item = &Rate> {
        self.events().filter_map(|event| match event {
            Event::Rate(rate) => Some(rate),
            _ => None,
        })
    }

    /// The kernel says that the TSC's claimed rate is not the measured one.
    pub fn rate_warning(&self) -> bool {
        self.events().any(|event| *event == Event::RateWarning)
    }

    /// The last time that the firmware had changed a CPU's TSC offset.
    pub fn firmware_bug(&self) -> Option<&FirmwareBug> {
        self.last(|event| match event {
            Event::FirmwareBug(bug) => Some(bug),
            _ => None,
        })
    }

    /// The last clock source that was asked for and refused.
    pub fn override_refused(&self) -> Option<&OverrideRefused> {
        self.last(|event| match event {
            Event::OverrideRefused(refused) => Some(refused),
            _ => None,
        })
    }

    /// Whether a clock source was marked unstable.
    pub fn gave_up(&self, name: &str) -> bool {
        self.events().any(|event| match event {
            Event::Unstable { clocksource, .. } => clocksource == name,
            Event::Skew(skew) => skew.clocksource.as_deref() == Some(name),
            _ => false,
        })
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.this_boot().iter().map(|entry| &entry.event)
    }

    fn last<'a, T>(&'a self, wanted: impl Fn(&'a Event) -> Option<T>) -> Option<T> {
        self.this_boot().iter().rev().find_map(|entry| wanted(&entry.event))
    }
}
