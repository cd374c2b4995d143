//! `clocksource use`: check, measure, switch, measure again, put back.

use super::known::{Grade, known};
use super::{Back, NotDone, PutBack, Setting, setting};
use crate::host::measure::Budget;
use crate::human::{duration, reason};
use crate::render::text::clocksource as text;
use crate::report::{ClockReport, Fact};
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub name: &'a str,
    pub stay: Stay,
    /// even one that can stall a host, or that is known to be bad
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stay {
    /// put back after so long
    For(Nanos),
    Keep,
}

/// What a switch needs besides the setting; tests bring their own.
pub trait Around {
    /// What is known against a clock source, as far as it can be known before it is in use.
    fn against(&mut self, name: &str) -> Vec<String>;
    /// Measures PostgreSQL's clock.
    fn measure(&mut self) -> ClockReport;
    /// Waits until the budget is spent or a signal has come.
    fn wait(&mut self, budget: &Budget);
    /// Shows a part of the result at once.
    fn say(&mut self, text: &str) -> anyhow::Result<()>;
}

/// Switches as wished. `stop` is set by a signal: what was switched is put back then.
pub fn switch(setting: &dyn Setting, wish: &Wish, around: &mut dyn Around, stop: &AtomicBool) -> anyhow::Result<()> {
    let (name, system) = (wish.name, setting.system());
    // Claimed before the first look, so that no other run of ours can change what is seen; told
    // last, because a wish that cannot be had needs no right.
    let claim = setting.claim();
    let old = match current(setting)? {
        current if current == name => return around.say(&text::in_use_already(name)),
        current => current,
    };
    may_be_had(setting, wish)?;
    let _claim = claim.map_err(|e| setting::refused(&e, system, name))?;
    if !wish.force {
        not_known_bad(name, &around.against(name))?;
    }

    around.say(&text::way_back(&system.set(&old)))?;
    let before = around.measure();
    if stopped(stop) {
        return Err(NotDone::new("stopped before anything was changed", still(&old)).into());
    }
    // Half a second has passed.
    let now = current(setting)?;
    if now != old {
        let what = format!("somebody else has just changed the clock source from {old} to {now}");
        return Err(NotDone::new(what, "it is left as it is; try again").into());
    }
    let limit = if let Stay::For(limit) = wish.stay { limit } else { Nanos(0.0) };
    let budget = Budget::new(limit, stop);
    let mut back = PutBack::armed(setting, &old, name);
    write(setting, name, &old, &mut back)?;

    let after = around.measure();
    if stopped(stop) {
        let told = back.now().told(&old, system)?;
        return Err(NotDone::new(format!("stopped before {name} was measured"), told).into());
    }
    around.say(&text::comparison((&old, &before), (name, &after)))?;
    if wish.stay == Stay::Keep {
        return keep(wish, &old, &after, setting, back, around);
    }
    around.say(&text::waiting(&old, budget.left()))?;
    around.wait(&budget);
    let early = stopped(stop).then(|| budget.spent());
    let told = back.now().told(&old, system)?;
    around.say(&text::put_back(&told, early))
}

fn current(setting: &dyn Setting) -> Result<String, NotDone> {
    match setting.look().current {
        Fact::Known(name) => Ok(name),
        Fact::Unavailable { unavailable } => Err(nothing_to_switch(&unavailable)),
    }
}

/// Where the kernel does not say what it keeps time by.
pub fn nothing_to_switch(why: &str) -> NotDone {
    NotDone::new(
        format!("the kernel's clock source is unknown: {why}"),
        "this needs Linux with sysfs mounted on /sys, or FreeBSD; pg_timing check measures the clock all the same",
    )
}

fn may_be_had(setting: &dyn Setting, wish: &Wish) -> Result<(), NotDone> {
    let name = wish.name;
    let available = match setting.look().available {
        Fact::Known(available) => available,
        Fact::Unavailable { unavailable } => return Err(nothing_to_switch(&unavailable)),
    };
    if !available.iter().any(|offered| offered == name) {
        let mut hint = format!("available: {}", available.join(" "));
        if name == "tsc" {
            hint += "; a TSC that the kernel has given up cannot be switched back on while this kernel runs: only a \
                     restart makes it judge anew";
        }
        let what = format!("the kernel does not offer a clock source \"{}\"", name.escape_debug());
        return Err(NotDone::new(what, hint));
    }
    match known(name) {
        Some(known) if known.grade == Grade::Stalls && !wish.force => Err(NotDone::new(
            format!("{name} can make a large host stall: it is {}", known.what),
            format!("to try it all the same, as briefly as it takes: pg_timing clocksource use {name} --for 1 --force"),
        )),
        _ => Ok(()),
    }
}

fn not_known_bad(name: &str, against: &[String]) -> Result<(), NotDone> {
    match against.is_empty() {
        true => Ok(()),
        false => Err(NotDone::new(
            format!("{name} is known to be bad on this host: {}", against.join("; ")),
            format!("to try it all the same, as briefly as it takes: pg_timing clocksource use {name} --for 1 --force"),
        )),
    }
}

/// Writes and reads back. A name that the kernel does not take is no error to it: it then runs on
/// what itself thinks best, which need not be the old one.
fn write(setting: &dyn Setting, name: &str, old: &str, back: &mut PutBack) -> Result<(), NotDone> {
    let written = setting.set(name);
    let now = setting.look().current;
    let why = match (written, &now) {
        (Ok(()), Fact::Known(now)) if now == name => return Ok(()),
        (Err(e), _) => reason(&e),
        (Ok(()), Fact::Known(now)) if now == old => format!("the kernel stays with {old}"),
        (Ok(()), Fact::Known(now)) => format!("the kernel has taken {now} instead"),
        (Ok(()), Fact::Unavailable { unavailable }) => unavailable.clone(),
    };
    if let Fact::Known(now) = now {
        back.answered_with(&now);
    }
    Err(NotDone::new(
        format!("could not switch to {name}: {why}"),
        "the kernel's log may say why: dmesg | grep -i clocksource",
    ))
}

fn keep(
    wish: &Wish,
    old: &str,
    after: &ClockReport,
    setting: &dyn Setting,
    back: PutBack,
    around: &mut dyn Around,
) -> anyhow::Result<()> {
    let (name, system) = (wish.name, setting.system());
    if after.backward_steps > 0 && !wish.force {
        let told = match back.now() {
            Back::Done => String::new(),
            other => other.told(old, system)? + " ",
        };
        let by = duration(after.largest_backward_ns);
        return Err(NotDone::new(
            format!("{name} is not kept: the time went back by up to {by} while it was measured"),
            format!("{told}{}; --force keeps it all the same", still(old)),
        )
        .into());
    }
    back.disarm();
    around.say(&text::kept(name, old, system))
}

fn still(old: &str) -> String {
    format!("the clock source is {old} as before")
}

fn stopped(stop: &AtomicBool) -> bool {
    stop.load(std::sync::atomic::Ordering::Relaxed)
}
