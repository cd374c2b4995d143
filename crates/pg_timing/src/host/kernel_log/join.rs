//! Joins the lines of one event, even if other lines stand between them or one is missing.

use std::mem::discriminant;

use super::Entry;
use super::event::{CheckSkipped, CpuSkew, Event, Reading, Skew, SyncCheck, Warp};
use super::line::Line;
use super::message::Parsed;

/// The kernel prints the lines of an event at once. A slow serial console can delay them. Later lines are another
/// event.
const MAX_DISTANCE_S: f64 = 5.0;
/// A suspend takes longer: the kernel freezes tasks and stops devices, and can log each step.
const MAX_SLEEP_DISTANCE_S: f64 = 60.0;

/// Receives the messages in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    entries: Vec<Entry>,
    /// indexes of events that can get further lines; at most one of each kind
    open: Vec<usize>,
}

impl Joiner {
    /// Adds a message to an open event, or starts a new one.
    pub fn push(&mut self, line: &Line<'_>, parsed: Parsed) {
        if !self.joins(line, &parsed) {
            self.begin(line, parsed.event);
        }
    }

    /// Returns all events.
    pub fn finish(self) -> Vec<Entry> {
        self.entries
    }

    /// Joins the message to an open event, if it belongs to one. Returns whether it did.
    fn joins(&mut self, line: &Line<'_>, parsed: &Parsed) -> bool {
        let sleep = is_sleep(&parsed.event);
        if parsed.begins && !sleep {
            return false;
        }
        let kind = discriminant(&parsed.event);
        let Some(at) = self.open.iter().copied().find(|at| discriminant(&self.entries[*at].event) == kind) else {
            return false;
        };
        let entry = &mut self.entries[at];
        let max_distance = if sleep { MAX_SLEEP_DISTANCE_S } else { MAX_DISTANCE_S };
        if entry.seconds.zip(line.seconds).is_some_and(|(then, now)| (now - then).abs() > max_distance) {
            return false;
        }
        let Some(joined) = joined(&entry.event, &parsed.event) else { return false };
        entry.event = joined;
        true
    }

    /// Starts a new event, and closes those that it ends.
    fn begin(&mut self, line: &Line<'_>, event: Event) {
        let kind = discriminant(&event);
        let entries = &self.entries;
        match event {
            // The switch ends the event that caused it.
            Event::Switched { .. } => self.open.retain(|at| is_sleep(&entries[*at].event)),
            Event::Boot { .. } => self.open.clear(),
            Event::Suspend { .. } | Event::Resume { .. } => self.open.retain(|at| !is_sleep(&entries[*at].event)),
            _ => self.open.retain(|at| discriminant(&entries[*at].event) != kind),
        }
        if has_more_lines(&event) {
            self.open.push(self.entries.len());
        }
        self.entries.push(Entry { seconds: line.seconds, stamp: line.stamp.map(String::from), event });
    }
}

fn is_sleep(event: &Event) -> bool {
    matches!(event, Event::Suspend { .. } | Event::Resume { .. })
}

/// Returns whether further lines may belong to the event.
fn has_more_lines(event: &Event) -> bool {
    use Event::*;
    matches!(event, Skew(_) | CpuSkew(_) | CheckSkipped(_) | SyncCheck(_) | Warp(_) | Suspend { .. } | Resume { .. })
}

/// Returns both as one event, if no field contradicts another.
fn joined(event: &Event, part: &Event) -> Option<Event> {
    Some(match (event, part) {
        (Event::Skew(a), Event::Skew(b)) => Event::Skew(Box::new(skew(a, b)?)),
        (Event::CpuSkew(a), Event::CpuSkew(b)) => Event::CpuSkew(CpuSkew {
            clocksource: merged(&a.clocksource, &b.clocksource)?,
            low: merged(&a.low, &b.low)?,
            high: merged(&a.high, &b.high)?,
        }),
        (Event::CheckSkipped(a), Event::CheckSkipped(b)) => Event::CheckSkipped(CheckSkipped {
            clocksource: merged(&a.clocksource, &b.clocksource)?,
            cpu: merged(&a.cpu, &b.cpu)?,
            watchdog: merged(&a.watchdog, &b.watchdog)?,
            delay_ns: merged(&a.delay_ns, &b.delay_ns)?,
            watchdog_delay_ns: merged(&a.watchdog_delay_ns, &b.watchdog_delay_ns)?,
            interval_ns: merged(&a.interval_ns, &b.interval_ns)?,
        }),
        (Event::SyncCheck(a), Event::SyncCheck(b)) => Event::SyncCheck(SyncCheck {
            clocksource: merged(&a.clocksource, &b.clocksource)?,
            cpu: merged(&a.cpu, &b.cpu)?,
            compared: merged(&a.compared, &b.compared)?,
            ahead: merged(&a.ahead, &b.ahead)?,
            behind: merged(&a.behind, &b.behind)?,
            took_ns: merged(&a.took_ns, &b.took_ns)?,
        }),
        (Event::Warp(a), Event::Warp(b)) => Event::Warp(Warp {
            cpus: merged(&a.cpus, &b.cpus)?,
            cycles: merged(&a.cycles, &b.cycles)?,
            random: a.random || b.random,
        }),
        // A suspend has several messages. The first one names the kind of sleep best.
        (Event::Suspend { state: a }, Event::Suspend { state: b }) => Event::Suspend { state: a.clone().or(b.clone()) },
        (Event::Resume { slept_s: a }, Event::Resume { slept_s: b }) => Event::Resume { slept_s: a.or(*b) },
        _ => return None,
    })
}

fn skew(a: &Skew, b: &Skew) -> Option<Skew> {
    Some(Skew {
        clocksource: merged(&a.clocksource, &b.clocksource)?,
        cpu: merged(&a.cpu, &b.cpu)?,
        watchdog: merged(&a.watchdog, &b.watchdog)?,
        skew_ns: merged(&a.skew_ns, &b.skew_ns)?,
        interval_ns: merged(&a.interval_ns, &b.interval_ns)?,
        wd: reading(&a.wd, &b.wd)?,
        cs: reading(&a.cs, &b.cs)?,
        current: merged(&a.current, &b.current)?,
        frequency: a.frequency || b.frequency,
    })
}

/// Returns the reading that is present. One line contains a whole reading, so fields of two lines are never mixed.
fn reading(a: &Reading, b: &Reading) -> Option<Reading> {
    let none = Reading::default();
    if *b == none || a == b { Some(*a) } else { (*a == none).then_some(*b) }
}

/// Returns the value that is present, or `None` if there are two different values.
fn merged<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        _ => Some(a.clone().or_else(|| b.clone())),
    }
}
