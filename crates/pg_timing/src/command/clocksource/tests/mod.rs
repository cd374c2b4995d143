//! Whole switches, of a directory that looks like sysfs. What a test wants to happen in between, it
//! does when the switch measures or waits.

mod kernel;
mod list;
mod requests;
mod signals;
mod stage;
