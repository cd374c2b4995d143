//! Restores the clock source, even after an error or a panic.

use super::restored::{Restored, restore};
use super::{Guardian, Setting};
use crate::error::Error;
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
