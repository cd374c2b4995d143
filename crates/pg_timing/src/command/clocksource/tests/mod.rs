//! Tests of complete switches in a directory that looks like sysfs. A test simulates other events in callbacks, which
//! run when the switch measures or waits.

mod conflicts;
mod fakes;
mod interruptions;
mod list;
mod requests;
