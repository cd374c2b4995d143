//! Finds the facts that checks need in a kernel log.
//!
//! Only the last boot in the log counts, because a journal can contain several.

use super::demotion::{self, Demotion};
use super::event::{Event, FirmwareBug, OverrideRefused, Rate, Timecounter};
use super::{Entry, KernelClockLog};

impl KernelClockLog {
    /// Returns the entries since the last boot.
    pub fn this_boot(&self) -> &[Entry] {
        let boot = self.entries.iter().rposition(|entry| matches!(entry.event, Event::Boot { .. }));
        &self.entries[boot.unwrap_or(0)..]
    }

    /// Returns the last demotion of the TSC.
    pub fn demotion(&self) -> Option<Demotion> {
        demotion::last(self.this_boot())
    }

    /// Returns the selected clock sources, with the times of the switches.
    pub fn switches(&self) -> impl Iterator<Item = (Option<f64>, &str)> {
        self.this_boot().iter().filter_map(|entry| match &entry.event {
            Event::Switched { clocksource } => Some((entry.seconds, clocksource.as_str())),
            _ => None,
        })
    }

    /// Returns the rates in the log, in the order of the log.
    pub fn rates(&self) -> impl Iterator<Item = &Rate> {
        self.events().filter_map(|event| match event {
            Event::Rate(rate) => Some(rate),
            _ => None,
        })
    }

    /// Returns whether the kernel warned that the TSC's claimed rate differs from the measured one.
    pub fn rate_warning(&self) -> bool {
        self.events().any(|event| *event == Event::RateWarning)
    }

    /// Returns the last change of a CPU's TSC offset by the firmware.
    pub fn firmware_bug(&self) -> Option<&FirmwareBug> {
        self.last(|event| match event {
            Event::FirmwareBug(bug) => Some(bug),
            _ => None,
        })
    }

    /// Returns the last requested clock source that the kernel refused.
    pub fn override_refused(&self) -> Option<&OverrideRefused> {
        self.last(|event| match event {
            Event::OverrideRefused(refused) => Some(refused),
            _ => None,
        })
    }

    /// Returns FreeBSD's clock sources, in the order of the log.
    pub fn timecounters(&self) -> impl Iterator<Item = &Timecounter> {
        self.events().filter_map(|event| match event {
            Event::Timecounter(timecounter) => Some(timecounter),
            _ => None,
        })
    }

    /// Returns the clock source of a Linux before 2.6.21 for x86-64, which had no list of clock sources.
    ///
    /// "WALL ... GTOD" names the timer of the tick, and then the one that gettimeofday reads. Without GTOD, older
    /// kernels name only the timer of the tick.
    pub fn old_clocksource(&self) -> Option<&'static str> {
        self.last(|event| match event {
            Event::OldTimer { wall: Some(_), timer: Some(timer), .. } => Some(timer.as_str()),
            _ => None,
        })
        .and_then(|timer| match timer {
            "PIT/TSC" | "HPET/TSC" => Some("tsc"),
            "HPET" | "PIT/HPET" => Some("hpet"),
            "PM" => Some("acpi_pm"),
            "PIT" => Some("pit"),
            _ => None,
        })
    }

    /// Returns whether the kernel marked a clock source unstable.
    pub fn demoted(&self, name: &str) -> bool {
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
