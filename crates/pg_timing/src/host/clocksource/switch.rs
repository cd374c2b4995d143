//! `clocksource use`: check, measure, switch, measure again, restore.

use super::{Guardian, Restore, Restored, Setting, setting};
use crate::error::Error;
use crate::host::measure::Budget;
use crate::human::{duration, reason};
use crate::report::{ClockReport, Fact, SwitchEvent, traits_of};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// What the user asked for.
#[derive(Clone, Copy, Debug)]
pub struct SwitchRequest<'a> {
    pub name: &'a str,
    pub duration: Duration,
    /// switch even to a clock source that can stall a host, or that has known faults
    pub force: bool,
}

/// How long the new clock source stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duration {
    /// the old one is restored after this time
    For(Nanos),
    /// until the next restart
    Keep,
}

/// What a switch needs besides the setting. Tests bring their own.
pub trait SwitchEnv {
    /// Returns the faults of a clock source that are known before it is used.
    fn known_faults(&mut self, name: &str) -> Vec<String>;
    /// Starts the process that restores `old` if this program is killed, or stopped for longer than the trial.
    fn guard(&mut self, setting: &dyn Setting, old: &str, new: &str, trial: Nanos) -> Result<Guardian, Error>;
    /// Measures PostgreSQL's clock.
    fn measure(&mut self) -> ClockReport;
    /// Waits until the budget is spent or a signal arrives.
    fn wait(&mut self, budget: &Budget);
    /// Shows a step at once.
    fn show(&mut self, event: SwitchEvent) -> anyhow::Result<()>;
}

/// Switches the clock source. A signal sets `stop`; then the old clock source is restored.
pub fn switch(
    setting: &dyn Setting,
    request: &SwitchRequest,
    env: &mut dyn SwitchEnv,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let (name, system) = (request.name, setting.system());
    // Lock before reading, so that no other pg_timing changes the clock source in between. Report a failed lock last:
    // a request that is impossible anyway needs no permission.
    let lock = setting.lock();
    let old = match current(setting)? {
        current if current == name => return env.show(SwitchEvent::AlreadyCurrent { name }),
        current => current,
    };
    check_request(setting, request)?;
    let _lock = lock.map_err(|error| setting::not_permitted(&error, system, name))?;
    if !request.force {
        refuse_known_faults(name, &env.known_faults(name))?;
    }

    env.show(SwitchEvent::UndoCommand { command: &system.switch_command(&old) })?;
    let before = env.measure();
    if is_set(stop) {
        return Err(Error::new("stopped before anything was changed", unchanged(&old)).into());
    }
    // The measurement took half a second, and the clock source may have changed meanwhile.
    let now = current(setting)?;
    if now != old {
        let what = format!("another user or program has just changed the clock source from {old} to {now}");
        return Err(Error::new(what, "pg_timing changed nothing; try again").into());
    }
    let limit = if let Duration::For(limit) = request.duration { limit } else { Nanos(0.0) };
    let budget = Budget::new(limit, stop);
    let guardian = env.guard(setting, &old, name, limit)?;
    let mut restore = Restore::armed(setting, &old, name, guardian);
    write(setting, name, &old, &mut restore)?;

    let after = env.measure();
    if is_set(stop) {
        let message = restore.now().message(&old, system)?;
        return Err(Error::new(format!("stopped before {name} was measured"), message).into());
    }
    let overhead_ns = before.overhead_per_node_ns().zip(after.overhead_per_node_ns()).map(|(old, new)| [old, new]);
    env.show(SwitchEvent::Measured { old: (&old, &before), new: (name, &after), overhead_ns })?;
    if request.duration == Duration::Keep {
        return keep(request, &old, &after, setting, restore, env);
    }
    env.show(SwitchEvent::Waiting { old: &old, left: budget.left() })?;
    env.wait(&budget);
    let stopped_after = is_set(stop).then(|| budget.spent());
    let message = restore.now().message(&old, system)?;
    env.show(SwitchEvent::Restored { message: &message, stopped_after })
}

fn current(setting: &dyn Setting) -> Result<String, Error> {
    match setting.read().current {
        Fact::Known(name) => Ok(name),
        Fact::Unavailable { unavailable } => Err(unknown_clocksource(&unavailable)),
    }
}

/// Returns the error for a kernel that does not show its clock source.
pub fn unknown_clocksource(why: &str) -> Error {
    Error::new(
        format!("the kernel's clock source is unknown: {why}"),
        "this command needs Linux with sysfs mounted on /sys, or FreeBSD; pg_timing check works without it",
    )
}

/// Refuses a clock source that the kernel does not offer, or that can stall the host.
fn check_request(setting: &dyn Setting, request: &SwitchRequest) -> Result<(), Error> {
    let name = request.name;
    let available = match setting.read().available {
        Fact::Known(available) => available,
        Fact::Unavailable { unavailable } => return Err(unknown_clocksource(&unavailable)),
    };
    if !available.iter().any(|available| available == name) {
        let mut hint = format!("available: {}", available.join(" "));
        if name == "tsc" {
            hint += "; if the kernel marked the TSC unstable, only a restart makes it available again";
        }
        let what = format!("the kernel does not offer a clock source \"{}\"", name.escape_debug());
        return Err(Error::new(what, hint));
    }
    match traits_of(name) {
        Some(traits) if traits.can_stall() && !request.force => {
            Err(Error::new(format!("{name} can stall a large host: it is {}", traits.what), hint_to_force(name)))
        }
        _ => Ok(()),
    }
}

fn refuse_known_faults(name: &str, faults: &[String]) -> Result<(), Error> {
    match faults.is_empty() {
        true => Ok(()),
        false => {
            Err(Error::new(format!("{name} has known faults on this host: {}", faults.join("; ")), hint_to_force(name)))
        }
    }
}

fn hint_to_force(name: &str) -> String {
    format!("to try it for one second anyway: pg_timing clocksource use {name} --for 1 --force")
}

/// Writes the name and reads it back.
///
/// The kernel reports no error for a name that it does not accept. It selects what it thinks best, which may not be the
/// old clock source.
fn write(setting: &dyn Setting, name: &str, old: &str, restore: &mut Restore) -> Result<(), Error> {
    let written = setting.write(name);
    let current = setting.read().current;
    let why = match (written, &current) {
        (Ok(()), Fact::Known(current)) if current == name => return Ok(()),
        (Err(error), _) => reason(&error),
        (Ok(()), Fact::Known(current)) if current == old => format!("the kernel still uses {old}"),
        (Ok(()), Fact::Known(current)) => format!("the kernel switched to {current} instead"),
        (Ok(()), Fact::Unavailable { unavailable }) => unavailable.clone(),
    };
    if let Fact::Known(current) = current {
        restore.set_expected(&current);
    }
    Err(Error::new(
        format!("could not switch to {name}: {why}"),
        "the kernel log may show the reason: dmesg | grep -i clocksource",
    ))
}

fn keep(
    request: &SwitchRequest,
    old: &str,
    after: &ClockReport,
    setting: &dyn Setting,
    restore: Restore,
    env: &mut dyn SwitchEnv,
) -> anyhow::Result<()> {
    let (name, system) = (request.name, setting.system());
    if after.backward_steps > 0 && !request.force {
        let message = match restore.now() {
            Restored::Done => String::new(),
            other => other.message(old, system)? + " ",
        };
        let by = duration(after.largest_backward_ns);
        return Err(Error::new(
            format!("{name} is not kept: the time went back by up to {by} during the measurement"),
            format!("{message}{}; --force keeps {name} anyway", unchanged(old)),
        )
        .into());
    }
    restore.disarm();
    // If this program was stopped for a while, the guardian has restored the old clock source.
    match current(setting)? {
        current if current == name => {
            let grade = traits_of(name).map(|traits| traits.grade);
            env.show(SwitchEvent::Kept { name, grade, old, system })
        }
        current => Err(Error::new(
            format!("{name} was not kept: the clock source is {current}"),
            "pg_timing was stopped, or another program has changed it; try again",
        )
        .into()),
    }
}

fn unchanged(old: &str) -> String {
    format!("the clock source is still {old}")
}

fn is_set(stop: &AtomicBool) -> bool {
    stop.load(std::sync::atomic::Ordering::Relaxed)
}

/// The longest single wait in ms. A signal that arrives just before it starts goes unnoticed for this long.
const MAX_WAIT_MS: f64 = 20.0;

/// Waits until the budget is spent or its flag is set.
pub fn wait(budget: &Budget) {
    while budget.go_on() {
        let ms = (budget.left().0 / 1e6).ceil().clamp(1.0, MAX_WAIT_MS) as libc::c_int;
        // A signal ends poll(), but not the standard library's sleep. This matters on a clock source that stands still,
        // where timers stand still, too.
        // SAFETY: there are no descriptors, so poll() does not use the null pointer.
        unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_time_is_up() {
        let stop = AtomicBool::new(false);
        let budget = Budget::new(Nanos::from_millis(5.0), &stop);
        wait(&budget);
        assert!(!budget.go_on());
    }

    #[test]
    fn it_ends_when_the_flag_is_set() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(1e6), &stop);
        wait(&budget);
        assert!(budget.interrupted());
    }
}
