//! Measures every clock of a host and says what they mean for PostgreSQL's EXPLAIN ANALYZE.
//!
//! A library only so that tests and benchmarks reach it; its interface is the command's.

pub mod advise;
pub mod check;
pub mod clocksource;
pub mod command;
pub mod ephemeral;
pub mod explain;
pub mod host;
pub mod human;
pub mod kernel_log;
pub mod measure;
pub mod pg_test_timing;
pub mod postgres;
pub mod render;
pub mod report;
pub mod survey;
