//! Measures every clock of a host and says what they mean for PostgreSQL's EXPLAIN ANALYZE.
//!
//! A library only so that tests and benchmarks reach it; its interface is the command's.

pub mod command;
pub mod error;
pub mod host;
pub mod human;
pub mod render;
pub mod report;
pub mod server;
pub mod statistics;
