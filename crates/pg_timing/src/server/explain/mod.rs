//! How much of EXPLAIN ANALYZE is overhead, node by node.

pub mod live;

pub use live::{NOT_ROLLED_BACK, RunOptions, Script, classic, explain};
