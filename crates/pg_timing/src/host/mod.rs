//! The host wing: the host's facts, its clocks, and the checks.

pub mod check;
pub mod clocksource;
pub mod facts;
pub mod kernel_log;
pub mod measure;
pub mod pattern;
pub mod pg_test_timing;
pub mod survey;
pub mod watch;
