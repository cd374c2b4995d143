//! The loops that read clocks and count. They know no texts and ask no user: what to measure, for how long, and when to
//! stop are arguments.
//!
//! This is a crate of its own because debug builds optimize it. Without optimization a read costs half as much again.
//! Generic code is compiled where its types are known. So [`clocks()`] compiles the loops of all real clocks here and
//! returns them behind a trait.

mod affinity;
mod budget;
mod classic;
mod clocks;
mod histogram;
mod meter;
mod record;
mod skew;
mod subsample;

pub use affinity::{Pinned, allowed};
pub use budget::Budget;
pub use classic::{Backward, Block, ClassicLoop};
pub use clocks::{Clocks, SYSTEM, clock, clocks};
pub use histogram::Histogram;
pub use meter::{ClockMeter, MeasuredStep, Meter, measure_step, rate_of};
pub use record::{BUFFER, GAP_FACTOR, MIN_GAP, Outside, Record, timing_cost};
pub use skew::{Bounds, SkewError, skew_between};
pub use subsample::Subsample;
