//! Putting the clock source back, whatever happens.

use super::{NotDone, Setting, System};
use crate::human::reason;
use crate::report::Fact;
use std::io::Write;

/// Puts the clock source back when dropped: by an error on the way out, or by a panic.
pub struct PutBack<'a> {
    setting: &'a dyn Setting,
    old: String,
    /// what our write has made of it: anything else is somebody else's doing
    ours: String,
    armed: bool,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    Done,
    /// it was the old one already
    Already,
    /// somebody else, or the kernel, has chosen another one meanwhile: it is left alone
    Theirs(String),
    Failed(String),
}

impl<'a> PutBack<'a> {
    /// To be armed before the first write.
    pub fn armed(setting: &'a dyn Setting, old: &str, ours: &str) -> PutBack<'a> {
        PutBack { setting, old: old.into(), ours: ours.into(), armed: true }
    }

    /// The kernel has answered our write with this one.
    pub fn answered_with(&mut self, name: &str) {
        self.ours = name.into();
    }

    pub fn now(mut self) -> Back {
        self.armed = false;
        self.put_back()
    }

    /// The new clock source stays.
    pub fn disarm(mut self) {
        self.armed = false;
    }

    fn put_back(&self) -> Back {
        match self.setting.look().current {
            Fact::Known(now) if now == self.old => return Back::Already,
            Fact::Known(now) if now != self.ours => return Back::Theirs(now),
            // Where it can no longer be read, a write may still help.
            _ => {}
        }
        let written = self.setting.set(&self.old);
        match (self.setting.look().current, written) {
            (Fact::Known(now), _) if now == self.old => Back::Done,
            (_, Err(e)) => Back::Failed(reason(&e)),
            (Fact::Known(now), Ok(())) => Back::Failed(format!("the kernel stays with {now}")),
            (Fact::Unavailable { unavailable }, Ok(())) => Back::Failed(unavailable),
        }
    }
}

impl Back {
    /// In words, or as an error with what to type.
    pub fn told(&self, old: &str, system: System) -> Result<String, NotDone> {
        match self {
            Back::Done => Ok(format!("The clock source is {old} again.")),
            Back::Already => Ok(format!("The clock source is {old} already: it was put back by somebody else.")),
            Back::Theirs(now) => Err(NotDone::new(
                format!(
                    "the clock source is not put back to {old}: somebody else, or the kernel itself, has changed it to \
                     {now} meanwhile"
                ),
                format!("if it should be {old} after all, as root: {}", system.set(old)),
            )),
            Back::Failed(why) => Err(NotDone::new(
                format!("THE CLOCK SOURCE COULD NOT BE PUT BACK TO {old}: {why}"),
                format!("type, as root: {}", system.set(old)),
            )),
        }
    }
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let mut stderr = std::io::stderr();
        _ = match self.put_back() {
            // The write never took place, or was refused: there is nothing to tell.
            Back::Already => Ok(()),
            back => match back.told(&self.old, self.setting.system()) {
                Ok(text) => writeln!(stderr, "{text}"),
                Err(NotDone { what, hint }) => writeln!(stderr, "pg_timing: error: {what}\nhint: {hint}"),
            },
        };
    }
}
