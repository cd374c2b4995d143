//! What is measured on a host: its facts, its clocks, and what the checks find.

pub mod check;
pub mod clocksource;
pub mod facts;
pub mod kernel_log;
pub mod measure;
pub mod pg_test_timing;
pub mod survey;
