//! How much of EXPLAIN ANALYZE is the clock, node by node.

mod attribution;
mod captured;
mod live;
mod plan;

pub use captured::{Known, Read, captured};
pub use live::{STAYS, Statement, Unfit, Wishes, classic, explain};
pub use plan::Explained;
