//! Turns readings of clocks into figures. The loops that read are in the crate `read-loops`.

mod drift;
mod figures;

pub use drift::{DriftMeter, Drifting, MAX_SLEW, MAX_WANDER, Sample, Step, trend};
pub use figures::{log2_row, summarize, without_rate};
pub use read_loops::*;
