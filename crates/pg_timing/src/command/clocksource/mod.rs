//! `pg_timing clocksource`: lists the kernel's clock sources, or switches to another one.

#[cfg(test)]
mod tests;

use super::arguments::{ClocksourceArguments, ClocksourceCommand, UseArguments};
use super::{check, interrupt, print, show};
use crate::document;
use crate::error::Error;
use crate::host::clocksource::{Duration, Guardian, Setting, SwitchEnv, SwitchRequest, list, switch, wait};
use crate::host::facts::Host;
use crate::host::measure::Budget;
use crate::host::survey;
use crate::report::{ClockReport, SwitchEvent};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// Measuring time of the current clock source in the list.
const LIST_TIME: Nanos = Nanos::from_millis(200.0);
/// Measuring time of each clock source in a comparison.
const COMPARE_TIME: Nanos = Nanos::from_millis(500.0);

pub fn run(arguments: ClocksourceArguments) -> anyhow::Result<u8> {
    match arguments.command {
        None => show_list(arguments.list.root.as_deref()),
        Some(ClocksourceCommand::List(list)) => show_list(list.root.as_deref()),
        Some(ClocksourceCommand::Use(arguments)) => use_clocksource(&arguments),
    }
    .map(|()| 0)
}

fn show_list(root: Option<&Path>) -> anyhow::Result<()> {
    let host = check::host(root)?;
    let measure = || survey::system_clock(LIST_TIME, &AtomicBool::new(false));
    show(&document::clocksource::list(&list(&host, measure)?))
}

fn use_clocksource(arguments: &UseArguments) -> anyhow::Result<()> {
    let duration = if arguments.keep { Duration::Keep } else { Duration::For(arguments.seconds) };
    let request = SwitchRequest { name: &arguments.name, duration, force: arguments.force };
    let stop = interrupt::flag_until_restored()?;
    switch(&Host::live(), &request, &mut LiveEnv { stop: &stop }, &stop)
}

/// Measures this host's clock, waits in real time and prints to stdout.
struct LiveEnv<'a> {
    stop: &'a AtomicBool,
}

impl SwitchEnv for LiveEnv<'_> {
    fn known_faults(&mut self, name: &str) -> Vec<String> {
        survey::known_faults(&Host::live(), name, &Budget::new(COMPARE_TIME, self.stop))
    }

    fn guard(&mut self, setting: &dyn Setting, old: &str, new: &str, trial: Nanos) -> Result<Guardian, Error> {
        Guardian::start(setting, old, new, std::time::Duration::from_secs_f64(trial.secs()))
    }

    fn measure(&mut self) -> ClockReport {
        survey::system_clock(COMPARE_TIME, self.stop)
    }

    fn wait(&mut self, budget: &Budget) {
        wait(budget);
    }

    fn show(&mut self, event: SwitchEvent) -> anyhow::Result<()> {
        let is_first = matches!(event, SwitchEvent::UndoCommand { .. });
        show(&document::clocksource::event(&event))?;
        if is_first { print("\n") } else { Ok(()) }
    }
}
