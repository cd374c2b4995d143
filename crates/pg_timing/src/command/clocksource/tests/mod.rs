//! Whole switches, of a directory that looks like sysfs. What a test wants to happen in between, it
//! does when the switch measures or waits.

mod kernel;
mod list;
mod signals;
mod stage;
mod wishes;

pub use stage::tree;
