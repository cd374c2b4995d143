//! `pg_timing clocksource`: which clock sources the kernel offers, and switching it to another one.
//!
//! The only part of the program that changes a host. It goes through [`Setting`], so that tests
//! switch a directory; what was changed is put back by [`PutBack`], whatever happens in between.

mod commands;
mod known;
mod list;
mod put_back;
mod setting;
mod switch;
#[cfg(test)]
mod tests;

mod wait;

pub use commands::System;
pub use known::{Grade, Known, Vdso, best_first, known};
pub use list::{List, Row, State, list};
pub use put_back::{Back, PutBack};
pub use setting::{Claim, Setting};
pub use switch::{Around, Stay, Wish, switch};
pub use wait::wait;

/// What could not be done, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDone {
    pub what: String,
    pub hint: String,
}

impl NotDone {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> NotDone {
        NotDone { what: what.into(), hint: hint.into() }
    }
}

impl std::fmt::Display for NotDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for NotDone {}
