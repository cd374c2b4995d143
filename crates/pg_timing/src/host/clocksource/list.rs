//! `clocksource list`: what each clock source is, and what the kernel thinks of it.

use super::switch::nothing_to_switch;
use super::{Known, NotDone, known};
use crate::host::facts::Host;
use crate::report::{ClockReport, Fact, Measured, SYSTEM};

/// The clock sources of a host.
#[derive(Debug)]
pub struct List {
    pub rows: Vec<Row>,
    /// of the clock source in use, where it could be measured
    pub measured: Option<ClockReport>,
    /// this is the machine that we run on: something can be done about it
    pub live: bool,
}

#[derive(Debug, PartialEq)]
pub struct Row {
    pub name: String,
    pub state: State,
    pub known: Option<&'static Known>,
}

/// What the kernel thinks of a clock source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    InUse,
    Offered,
    /// the CPU calls the counter good, and the kernel does not offer it
    GivenUp,
    /// a boot parameter forbids it
    Forbidden(String),
    /// the CPU does not promise that the counter keeps one rate
    NotConstant,
    /// FreeBSD has it and says that it is no good
    Refused,
}

/// Lists a host's clock sources; the one in use is measured by `measure` if this is the machine
/// that we run on.
pub fn list(host: &Host, measure: impl FnOnce() -> ClockReport) -> Result<List, NotDone> {
    let clocksource = host.clocksource();
    let mut names = clocksource.available.known().cloned().unwrap_or_default();
    match &clocksource.current {
        Fact::Unavailable { unavailable } if names.is_empty() => return Err(nothing_to_switch(unavailable)),
        Fact::Known(current) if !names.contains(current) => names.push(current.clone()),
        _ => {}
    }
    let row = |name: &str, state| Row { name: name.into(), state, known: known(name) };
    let mut rows: Vec<Row> = names
        .iter()
        .map(|name| {
            let in_use = clocksource.current.known() == Some(name);
            row(name, if in_use { State::InUse } else { State::Offered })
        })
        .collect();
    match host.sysctls() {
        Some(sysctls) => rows.extend(sysctls.refused().iter().map(|name| row(name, State::Refused))),
        None => rows.extend(missing_tsc(host, &names).map(|state| row("tsc", state))),
    }
    rows.sort_by_key(|row| row.state != State::InUse);
    let live = host.is_live();
    let measured = if live { Some(measure()) } else { captured(host) };
    Ok(List { rows, measured: measured.filter(|clock| clock.read_ns.is_some()), live })
}

/// Why a CPU with a TSC has no clock source of it; `None` where it has one, or no TSC.
fn missing_tsc(host: &Host, names: &[String]) -> Option<State> {
    let there = names.iter().any(|name| name == "tsc" || name == "tsc-early");
    if there || host.architecture().known().is_none_or(|architecture| architecture != "x86_64") {
        return None;
    }
    let boot = host.boot_parameters();
    let forbids = |word: &&String| ["notsc", "tsc=unstable"].contains(&word.as_str());
    if let Some(word) = boot.known().and_then(|words| words.iter().find(forbids)) {
        return Some(State::Forbidden(word.clone()));
    }
    match host.features() {
        Fact::Known(features) if features.constant_rate() => Some(State::GivenUp),
        Fact::Known(_) => Some(State::NotConstant),
        Fact::Unavailable { .. } => None,
    }
}

/// What was measured when the tree was captured.
fn captured(host: &Host) -> Option<ClockReport> {
    let measured: Fact<Measured> = host.captured_json("measured");
    measured.known()?.clocks.iter().find(|clock| clock.name == SYSTEM).cloned()
}

impl List {
    /// The best of those that could be switched to and do no harm.
    pub fn other(&self) -> Option<&Row> {
        let offered = || self.rows.iter().filter(|row| row.state == State::Offered);
        let fast = super::best_first().find_map(|fast| offered().find(|row| row.name == fast.name));
        fast.or_else(|| offered().find(|row| row.known.is_some_and(|known| !known.is_slow())))
    }
}
