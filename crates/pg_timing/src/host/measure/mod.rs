//! Measures clocks: from readings to figures. The loops that read are in the crate `read-loops`.

mod drift;
mod figures;

pub use drift::{DriftMeter, Look, Step, Trend, trend};
pub use figures::{log2_row, summarise, without_rate};
pub use read_loops::*;
