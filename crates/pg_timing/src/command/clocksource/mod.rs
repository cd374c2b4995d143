//! `pg_timing clocksource`: lists the kernel's clock sources, or switches to another one.

#[cfg(test)]
mod tests;

use super::values::seconds;
use super::{check, interrupt, print, show};
use crate::document;
use crate::host::clocksource::{SwitchEnv, SwitchRequest, list, switch};
use crate::host::facts::Host;
use crate::host::measure::Budget;
use crate::host::survey;
use crate::report::{ClockReport, SwitchEvent};
use clap::{Args, Subcommand, ValueHint};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// Measuring time of the current clock source in the list.
const LIST_TIME: Nanos = Nanos::from_millis(200.0);
/// Measuring time of each clock source in a comparison.
const COMPARE_TIME: Nanos = Nanos::from_millis(500.0);
/// A shorter trial would end before the new clock source is measured.
const LEAST_TRIAL_S: f64 = 1.0;

const EXAMPLES: &str = "\
List the clock sources, and try tsc for 10 seconds:
  pg_timing clocksource
  sudo pg_timing clocksource use tsc";

const USE_EXAMPLES: &str = "\
Try tsc for a minute, and then use it until the next restart:
  sudo pg_timing clocksource use tsc --for 60
  sudo pg_timing clocksource use tsc --keep";

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct ClocksourceArguments {
    #[command(subcommand)]
    pub command: Option<ClocksourceCommand>,
    #[command(flatten)]
    pub list: ListArguments,
}

#[derive(Debug, Subcommand)]
pub enum ClocksourceCommand {
    /// List the clock sources with their read costs and states (the default)
    List(ListArguments),
    /// Switch to another clock source, compare the two, and restore the old one (not with --keep)
    #[command(after_help = USE_EXAMPLES)]
    Use(UseArguments),
}

#[derive(Debug, Args)]
pub struct ListArguments {
    /// List the clock sources of the captured tree in DIR instead of this machine's
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct UseArguments {
    /// A clock source that the list shows as available
    pub name: String,
    /// Time until the old clock source is restored, in seconds
    #[arg(long = "for", value_name = "SECONDS", default_value = "10", value_parser = seconds(LEAST_TRIAL_S), allow_negative_numbers = true)]
    pub seconds: Nanos,
    /// Keep the new clock source until the next restart
    #[arg(long, conflicts_with = "seconds")]
    pub keep: bool,
    /// Switch even if the clock source has faults or can stall a large host
    #[arg(long)]
    pub force: bool,
}

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
    let trial = (!arguments.keep).then_some(arguments.seconds);
    let request = SwitchRequest { name: &arguments.name, trial, force: arguments.force };
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

    fn measure(&mut self) -> ClockReport {
        survey::system_clock(COMPARE_TIME, self.stop)
    }

    fn show(&mut self, event: SwitchEvent) -> anyhow::Result<()> {
        let is_first = matches!(event, SwitchEvent::UndoCommand { .. });
        show(&document::clocksource::event(&event))?;
        if is_first { print("\n") } else { Ok(()) }
    }
}
