//! How much of EXPLAIN ANALYZE is overhead, node by node.

mod attribution;
pub mod captured;
pub mod live;
pub mod plan;

pub use captured::errors::unknown_clock;
pub use captured::{ClockOf, Inputs, ServerClock};
pub use live::{NOT_ROLLED_BACK, RunOptions, Script, classic, explain};
pub use plan::Explained;
