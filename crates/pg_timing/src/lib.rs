//! Measures every clock of a host and says what that means for PostgreSQL's EXPLAIN ANALYZE.
//!
//! This library exists so that tests and benchmarks can call the program's parts. Only the command has a stable
//! interface.

pub mod command;
pub mod document;
pub mod error;
mod escape;
mod guardian;
pub mod host;
pub mod human;
pub mod json;
pub mod log;
pub mod monitor;
mod output_file;
pub mod plan;
pub mod report;
pub mod server;
pub mod statistics;
mod tokens;
