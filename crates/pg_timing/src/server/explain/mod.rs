//! How much of EXPLAIN ANALYZE is overhead, node by node.

mod attribution;
mod captured;
mod live;
mod log;
mod plan;

pub use captured::errors::unknown_clock;
pub use captured::{ClockOf, Inputs, ServerClock, captured, text_of};
pub use live::{NOT_ROLLED_BACK, RunOptions, Script, classic, explain};
pub use log::{Gaps, Log, Plans, Sources};
pub use plan::Explained;
