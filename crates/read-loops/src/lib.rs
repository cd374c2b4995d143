//! The loops that read clocks and count. Callers pass the clock, the time limit and the stop flag. The loops print
//! nothing.
//!
//! This is a separate crate, so that debug builds can optimize it. Without optimization, a read takes 50% longer.
//! Generic code is compiled in the crate that chooses its types. So [`clocks()`] chooses all real clocks here, and
//! returns them as trait objects.

mod affinity;
mod budget;
mod classic;
mod clocks;
mod histogram;
mod meter;
mod record;
mod skew;
mod step;
mod subsample;
mod timed_calls;

pub use affinity::{Pinned, allowed};
pub use budget::Budget;
pub use classic::{Backward, Block, ClassicLoop};
pub use clocks::{COUNTERS, Clocks, SYSTEM, clock, clocks};
pub use histogram::Histogram;
pub use meter::{ClockMeter, Meter, rate_of};
pub use record::{BUFFER, GAP_FACTOR, MIN_GAP, Outside, Record, timing_cost};
pub use skew::{Bounds, SkewError, skew_between};
pub use step::{MeasuredStep, measure_step};
pub use subsample::Subsample;
