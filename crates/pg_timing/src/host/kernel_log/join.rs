//! Puts the lines of one event together, also when others stand between them or one is missing.

use std::mem::discriminant;

use super::Entry;
use super::event::{CheckSkipped, CpuSkew, Event, Reading, Skew, SyncCheck, Warp};
use super::line::Line;
use super::message::Said;

/// Lines of one event are printed at once. A slow serial console can stretch that, an hour is another event.
const APART_S: f64 = 5.0;
/// Going to sleep takes longer: tasks are frozen and devices stopped, and each step may be logged.
const SLEEP_APART_S: f64 = 60.0;

/// Takes what the lines say, in their order.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    entries: Vec<Entry>,
    /// the events that may go on, at most one of a kind
    open: Vec<usize>,
}

impl Joiner {
    pub fn push(&mut self, line: &Line<'_>, said: Said) {
        if !self.joins(line, &said) {
            self.begin(line, said.event);
        }
    }

    pub fn finish(self) -> Vec<Entry> {
        self.entries
    }

    /// Joins it to an open event if it belongs to one.
    fn joins(&mut self, line: &Line<'_>, said: &Said) -> bool {
        let sleep = is_sleep(&said.event);
        if said.begins && !sleep {
            return false;
        }
        let kind = discriminant(&said.event);
        let Some(at) = self.open.iter().copied().find(|at| discriminant(&self.entries[*at].event) == kind) else {
            return false;
        };
        let entry = &mut self.entries[at];
        let most = if sleep { SLEEP_APART_S } else { APART_S };
        if entry.seconds.zip(line.seconds).is_some_and(|(then, now)| (now - then).abs() > most) {
            return false;
        }
        let Some(joined) = joined(&entry.event, &said.event) else { return false };
        entry.event = joined;
        true
    }

    fn begin(&mut self, line: &Line<'_>, event: Event) {
        let kind = discriminant(&event);
        let entries = &self.entries;
        match event {
            // whatever was found has had its consequence
            Event::Switched { .. } => self.open.retain(|at| is_sleep(&entries[*at].event)),
            Event::Boot { .. } => self.open.clear(),
            Event::Suspend { .. } | Event::Resume { .. } => self.open.retain(|at| !is_sleep(&entries[*at].event)),
            _ => self.open.retain(|at| discriminant(&entries[*at].event) != kind),
        }
        if goes_on(&event) {
            self.open.push(self.entries.len());
        }
        self.entries.push(Entry { seconds: line.seconds, stamp: line.stamp.map(String::from), event });
    }
}

fn is_sleep(event: &Event) -> bool {
    matches!(event, Event::Suspend { .. } | Event::Resume { .. })
}

/// Whether further lines may belong to it.
fn goes_on(event: &Event) -> bool {
    use Event::*;
    matches!(event, Skew(_) | CpuSkew(_) | CheckSkipped(_) | SyncCheck(_) | Warp(_) | Suspend { .. } | Resume { .. })
}

/// Both as one event, if they do not contradict each other.
fn joined(event: &Event, part: &Event) -> Option<Event> {
    Some(match (event, part) {
        (Event::Skew(a), Event::Skew(b)) => Event::Skew(Box::new(skew(a, b)?)),
        (Event::CpuSkew(a), Event::CpuSkew(b)) => Event::CpuSkew(CpuSkew {
            clocksource: one(&a.clocksource, &b.clocksource)?,
            low: one(&a.low, &b.low)?,
            high: one(&a.high, &b.high)?,
        }),
        (Event::CheckSkipped(a), Event::CheckSkipped(b)) => Event::CheckSkipped(CheckSkipped {
            clocksource: one(&a.clocksource, &b.clocksource)?,
            cpu: one(&a.cpu, &b.cpu)?,
            watchdog: one(&a.watchdog, &b.watchdog)?,
            delay_ns: one(&a.delay_ns, &b.delay_ns)?,
            watchdog_delay_ns: one(&a.watchdog_delay_ns, &b.watchdog_delay_ns)?,
            interval_ns: one(&a.interval_ns, &b.interval_ns)?,
        }),
        (Event::SyncCheck(a), Event::SyncCheck(b)) => Event::SyncCheck(SyncCheck {
            clocksource: one(&a.clocksource, &b.clocksource)?,
            cpu: one(&a.cpu, &b.cpu)?,
            compared: one(&a.compared, &b.compared)?,
            ahead: one(&a.ahead, &b.ahead)?,
            behind: one(&a.behind, &b.behind)?,
            took_ns: one(&a.took_ns, &b.took_ns)?,
        }),
        (Event::Warp(a), Event::Warp(b)) => Event::Warp(Warp {
            cpus: one(&a.cpus, &b.cpus)?,
            cycles: one(&a.cycles, &b.cycles)?,
            random: a.random || b.random,
        }),
        // several messages of one sleep; the kind is said best by the first
        (Event::Suspend { state: a }, Event::Suspend { state: b }) => Event::Suspend { state: a.clone().or(b.clone()) },
        (Event::Resume { slept_s: a }, Event::Resume { slept_s: b }) => Event::Resume { slept_s: a.or(*b) },
        _ => return None,
    })
}

fn skew(a: &Skew, b: &Skew) -> Option<Skew> {
    Some(Skew {
        clocksource: one(&a.clocksource, &b.clocksource)?,
        cpu: one(&a.cpu, &b.cpu)?,
        watchdog: one(&a.watchdog, &b.watchdog)?,
        skew_ns: one(&a.skew_ns, &b.skew_ns)?,
        interval_ns: one(&a.interval_ns, &b.interval_ns)?,
        wd: reading(&a.wd, &b.wd)?,
        cs: reading(&a.cs, &b.cs)?,
        current: one(&a.current, &b.current)?,
        frequency: a.frequency || b.frequency,
    })
}

/// A line has all of a reading, so fields of two lines are never mixed.
fn reading(a: &Reading, b: &Reading) -> Option<Reading> {
    let none = Reading::default();
    if *b == none || a == b { Some(*a) } else { (*a == none).then_some(*b) }
}

/// The one that is there. `None`: both are, and differ.
fn one<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        _ => Some(a.clone().or_else(|| b.clone())),
    }
}
