//! `clocksource list`: what each clock source is, and what the kernel does with it.

use super::switch::unknown_clocksource;
use crate::error::Error;
use crate::host::facts::Host;
use crate::report::{
    ClockReport, ClocksourceList, ClocksourceRow, ClocksourceState, Fact, Measured, SYSTEM, traits_of,
};
use timing_clock::clocksource::is_tsc;

/// Lists a host's clock sources. `measure` measures the current one; it is called only for the host that we run on.
pub fn list(host: &Host, measure: impl FnOnce() -> ClockReport) -> Result<ClocksourceList, Error> {
    let clocksource = host.clocksource();
    let mut names = clocksource.available.known().cloned().unwrap_or_default();
    match &clocksource.current {
        Fact::Unavailable { unavailable } if names.is_empty() => return Err(unknown_clocksource(unavailable)),
        Fact::Known(current) if !names.contains(current) => names.push(current.clone()),
        _ => {}
    }
    let row = |name: &str, state| ClocksourceRow { name: name.into(), state, traits: traits_of(name) };
    let mut rows: Vec<ClocksourceRow> = names
        .iter()
        .map(|name| match clocksource.current.known() == Some(name) {
            true => row(name, ClocksourceState::Current),
            false => row(name, ClocksourceState::Available),
        })
        .collect();
    match host.sysctls() {
        Some(sysctls) => rows.extend(sysctls.refused().iter().map(|name| row(name, ClocksourceState::NegativeQuality))),
        None => rows.extend(missing_tsc(host, &names).map(|state| row("tsc", state))),
    }
    rows.sort_by_key(|row| row.state != ClocksourceState::Current);
    let live = host.is_live();
    let measured = if live { Some(measure()) } else { captured_figures(host) };
    Ok(ClocksourceList { rows, measured: measured.filter(|clock| clock.read_ns.is_some()), live })
}

/// Returns why the kernel does not offer the TSC of an x86 CPU. `None` if it does, or if the CPU has none.
fn missing_tsc(host: &Host, names: &[String]) -> Option<ClocksourceState> {
    let is_offered = names.iter().any(|name| is_tsc(name));
    if is_offered || host.architecture().known().is_none_or(|architecture| architecture != "x86_64") {
        return None;
    }
    let boot = host.boot_parameters();
    let forbids = |word: &&String| ["notsc", "tsc=unstable"].contains(&word.as_str());
    if let Some(word) = boot.known().and_then(|words| words.iter().find(forbids)) {
        return Some(ClocksourceState::Forbidden(word.clone()));
    }
    match host.features() {
        Fact::Known(features) if features.constant_rate() => Some(ClocksourceState::Rejected),
        Fact::Known(_) => Some(ClocksourceState::NotConstant),
        Fact::Unavailable { .. } => None,
    }
}

/// Returns the figures that were measured when the tree was captured.
fn captured_figures(host: &Host) -> Option<ClockReport> {
    let measured: Fact<Measured> = host.captured_json("measured");
    measured.known()?.clocks.iter().find(|clock| clock.name == SYSTEM).cloned()
}
