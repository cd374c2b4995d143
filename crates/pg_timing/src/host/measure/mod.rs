//! Reads clocks and counts. Knows no text and asks nobody: what to measure, for how long, and when
//! to stop come as arguments.

mod affinity;
mod budget;
mod classic;
mod clocks;
mod drift;
mod figures;
mod histogram;
mod meter;
mod record;
mod skew;
mod thinned;

pub use affinity::{Pinned, allowed};
pub use budget::Budget;
pub use classic::{Backward, ClassicLoop};
pub use clocks::{Clocks, clocks};
pub use drift::{DriftMeter, Look, Step, Trend, trend};
pub use figures::{log2_row, summarise, without_rate};
pub use histogram::Histogram;
pub use meter::{ClockMeter, Looked, Meter, look_at_steps, rate_of};
pub use record::{BUFFER, Outside, Record, timing_cost};
pub use skew::{Bounds, skew_between};
pub use thinned::Thinned;
