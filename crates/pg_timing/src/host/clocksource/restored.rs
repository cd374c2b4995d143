//! One attempt to restore the clock source, and its result.

use super::Setting;
use crate::error::Error;
use crate::human::reason;
use crate::report::{Fact, System};

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

/// Restores `old` if the clock source is `expected`.
pub fn restore(setting: &dyn Setting, old: &str, expected: &str) -> Restored {
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
