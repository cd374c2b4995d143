//! `pg_timing clocksource`: lists the kernel's clock sources and switches to another one.
//!
//! This is the only part of the program that changes a host. It changes it through [`Setting`], so that tests can
//! switch a directory instead. [`Restore`] restores the old clock source, even after an error or a panic. [`Guardian`]
//! restores it if this program is killed.

mod list;
mod restore;
mod setting;
mod switch;

pub use list::list;
pub use restore::{Guardian, Restore, Restored};
pub use setting::{Lock, Setting};
pub use switch::{Duration, SwitchEnv, SwitchRequest, switch, wait};
