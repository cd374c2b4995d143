//! `pg_timing clocksource`: lists the kernel's clock sources, or switches to another one.

#[cfg(test)]
mod tests;

use super::values::seconds;
use super::{check, interrupt, show};
use crate::document::{self, Block, Document};
use crate::error::{Error, require};
use crate::guardian::GuardianProcess;
use crate::host::clocksource::{
    Restore, Setting, check_request, current, hint_to_force, list, not_permitted, start_guardian, wait,
};
use crate::host::facts::Host;
use crate::host::measure::Budget;
use crate::host::survey;
use crate::human;
use crate::output_file::is_root;
use crate::report::ClockReport;
use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
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

pub fn run(arguments: ClocksourceArguments) -> Result<u8> {
    match arguments.command {
        None => show_list(arguments.list.root.as_deref()),
        Some(ClocksourceCommand::List(list)) => show_list(list.root.as_deref()),
        Some(ClocksourceCommand::Use(arguments)) => use_clocksource(&arguments),
    }
    .map(|()| 0)
}

fn show_list(root: Option<&Path>) -> Result<()> {
    let host = check::host(root)?;
    let measure = || survey::system_clock(LIST_TIME, &AtomicBool::new(false));
    show(&document::clocksource::list(&list(&host, measure)?))
}

fn use_clocksource(arguments: &UseArguments) -> Result<()> {
    let stop = interrupt::flag_until_restored()?;
    switch(&Host::live(), arguments, &mut LiveEnv { stop: &stop }, &stop)
}

type Guard = Result<Option<GuardianProcess>, Error>;

/// What a switch needs besides the setting. Tests bring their own.
trait SwitchEnv {
    /// Returns the faults of a clock source that are known before it is used.
    fn known_faults(&mut self, name: &str) -> Vec<String>;
    /// Starts the process that restores `old` if this program is killed, or stopped for longer than the trial. Tests have
    /// none.
    fn guard(&mut self, setting: &dyn Setting, old: &str, new: &str, trial: Nanos) -> Guard {
        start_guardian(setting, old, new, trial).map(Some)
    }
    /// Measures PostgreSQL's clock.
    fn measure(&mut self) -> ClockReport;
    /// Waits until the budget is spent or a signal arrives.
    fn wait(&mut self, budget: &Budget) {
        wait(budget);
    }
    /// Shows a step at once.
    fn show(&mut self, document: &Document) -> Result<()> {
        show(document)
    }
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
}

fn sentence(text: String) -> Document {
    Document::default().with(vec![Block::Text(text)])
}

/// Switches the clock source. A signal sets `stop`; then the old clock source is restored.
fn switch(setting: &dyn Setting, request: &UseArguments, env: &mut dyn SwitchEnv, stop: &AtomicBool) -> Result<()> {
    let UseArguments { name, seconds, keep, force } = request;
    let (name, keep, force) = (name.as_str(), *keep, *force);
    let is_stopped = || stop.load(Ordering::Relaxed);
    // Lock before reading, so that no other pg_timing changes the clock source in between. Report a failed lock last:
    // a request that is impossible anyway needs no permission.
    let lock = setting.lock();
    let old = current(setting)?;
    if old == name {
        return env.show(&sentence(format!("The clock source is {name} already. Nothing to do.")));
    }
    check_request(setting, name, force)?;
    let _lock = lock.map_err(|error| not_permitted(&error, name, is_root()))?;
    let faults = if force { Vec::new() } else { env.known_faults(name) };
    let what = format!("{name} has known faults on this host: {}", faults.join("; "));
    require(faults.is_empty(), what, hint_to_force(name))?;

    // How to undo the switch comes before any change.
    env.show(&document::clocksource::undo(&old))?;
    env.show(&sentence(String::new()))?;
    let before = env.measure();
    let unchanged = || format!("the clock source is still {old}");
    require(!is_stopped(), "stopped before anything was changed", unchanged())?;
    // The measurement took half a second, and the clock source may have changed meanwhile.
    let now = current(setting)?;
    let what = format!("another user or program has just changed the clock source from {old} to {now}");
    require(now == old, what, "pg_timing changed nothing; try again")?;
    let limit = if keep { Nanos(0.0) } else { *seconds };
    let budget = Budget::new(limit, stop);
    let mut restore = Restore::new(setting, &old, name, env.guard(setting, &old, name, limit)?);
    restore.switch()?;

    let after = env.measure();
    if is_stopped() {
        return Err(Error::new(format!("stopped before {name} was measured"), restore.now()?).into());
    }
    env.show(&document::clocksource::comparison((&old, &before), (name, &after)))?;
    if !keep {
        let left = human::seconds(budget.left().0);
        env.show(&sentence(format!("{old} will be restored in {left}. Ctrl-C restores it at once.")))?;
        env.wait(&budget);
        let stopped = is_stopped().then(|| format!("Stopped after {}. ", human::seconds(budget.spent().0)));
        return env.show(&sentence(stopped.unwrap_or_default() + &restore.now()?));
    }
    if after.backward_steps > 0 && !force {
        restore.now()?;
        let by = human::duration(after.largest_backward_ns);
        let what = format!("{name} is not kept: the time went back by up to {by} during the measurement");
        return Err(Error::new(what, format!("{}; --force keeps {name} anyway", unchanged())).into());
    }
    restore.disarm();
    // If this program was stopped for a while, the guardian has restored the old clock source.
    let now = current(setting)?;
    let hint = "pg_timing was stopped, or another program has changed it; try again";
    require(now == name, format!("{name} was not kept: the clock source is {now}"), hint)?;
    env.show(&document::clocksource::kept(name, &old))
}
