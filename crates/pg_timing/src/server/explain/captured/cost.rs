//! The cost of a timed call, from the read cost of the clock.

pub use crate::report::{clock_reads_ns, counting_ns};

use crate::server::explain::plan::Explained;

/// Whether BUFFERS was on. The text format omits counters that are 0.
pub fn counts_buffers(explained: &Explained) -> bool {
    explained.plan.any(&|node| node.buffers.is_some())
}
