//! Restores the clock source, even after an error or a panic.

use super::{Guardian, Setting};
use crate::error::Error;
use crate::human::reason;
use crate::report::{Fact, System};
use std::io::Write;

/// Restores the old clock source when it is dropped, unless it was disarmed.
pub struct Restore<'a> {
    setting: &'a dyn Setting,
    old: String,
    /// the clock source after our write; any other one was selected by someone else
    expected: String,
    armed: bool,
    guardian: Guardian,
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    Done,
    /// it was the old clock source already
    Already,
    /// another program or the kernel has selected this one meanwhile; it is left unchanged
    ChangedByOthers(String),
    Failed(String),
}

impl<'a> Restore<'a> {
    /// Returns an armed guard. Create it before the first write.
    pub fn armed(setting: &'a dyn Setting, old: &str, expected: &str, guardian: Guardian) -> Restore<'a> {
        Restore { setting, old: old.into(), expected: expected.into(), armed: true, guardian }
    }

    /// Sets the clock source that the kernel selected after our write.
    pub fn set_expected(&mut self, name: &str) {
        self.expected = name.into();
        self.guardian.set_expected(name);
    }

    /// Restores the old clock source now.
    pub fn now(mut self) -> Restored {
        self.armed = false;
        let restored = restore(self.setting, &self.old, &self.expected);
        self.guardian.dismiss();
        restored
    }

    /// Keeps the new clock source.
    pub fn disarm(mut self) {
        self.armed = false;
        self.guardian.dismiss();
    }
}

/// Restores `old` if the clock source is `expected`.
pub(super) fn restore(setting: &dyn Setting, old: &str, expected: &str) -> Restored {
    match setting.read().current {
        Fact::Known(current) if current == old => return Restored::Already,
        Fact::Known(current) if current != expected => return Restored::ChangedByOthers(current),
        // If it can no longer be read, a write may still work.
        _ => {}
    }
    let written = setting.write(old);
    match (setting.read().current, written) {
        (Fact::Known(current), _) if current == old => Restored::Done,
        (_, Err(error)) => Restored::Failed(reason(&error)),
        (Fact::Known(current), Ok(())) => Restored::Failed(format!("the kernel still uses {current}")),
        (Fact::Unavailable { unavailable }, Ok(())) => Restored::Failed(unavailable),
    }
}

impl Restored {
    /// Returns a message, or an error with the command to type.
    pub fn message(&self, old: &str, system: System) -> Result<String, Error> {
        match self {
            Restored::Done => Ok(format!("The clock source is {old} again.")),
            Restored::Already => Ok(format!("The clock source is {old} already: someone else restored it.")),
            Restored::ChangedByOthers(current) => Err(Error::new(
                format!(
                    "the clock source was not restored to {old}: another program or the kernel has changed it to {current}"
                ),
                format!("to restore it anyway, as root: {}", system.switch_command(old)),
            )),
            Restored::Failed(why) => Err(Error::new(
                format!("THE CLOCK SOURCE COULD NOT BE RESTORED TO {old}: {why}"),
                format!("as root, type: {}", system.switch_command(old)),
            )),
        }
    }
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let restored = restore(self.setting, &self.old, &self.expected);
        self.guardian.dismiss();
        let mut stderr = std::io::stderr();
        _ = match restored {
            // The write never happened, or the kernel refused it.
            Restored::Already => Ok(()),
            restored => match restored.message(&self.old, self.setting.system()) {
                Ok(text) => writeln!(stderr, "{text}"),
                Err(Error { what, hint, .. }) => writeln!(stderr, "pg_timing: error: {what}\nhint: {hint}"),
            },
        };
    }
}
