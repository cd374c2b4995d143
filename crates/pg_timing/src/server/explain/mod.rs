//! How much of EXPLAIN ANALYZE is overhead, node by node.

mod attribution;
mod captured;
mod live;
mod plan;

pub use captured::{Inputs, ServerClock, captured};
pub use live::{NOT_ROLLED_BACK, RunOptions, Script, classic, explain};
pub use plan::Explained;
