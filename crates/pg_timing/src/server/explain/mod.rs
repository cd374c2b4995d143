//! How much of EXPLAIN ANALYZE is overhead, node by node.

mod captured;
mod live;
mod log;

#[cfg(test)]
pub use crate::plan::{ClockOf, Explained};
pub use captured::{captured, text_of};
pub use live::{NOT_ROLLED_BACK, RunOptions, Script, classic, explain};
pub use log::{Gaps, Log, Plans, Sources};

use crate::plan;
