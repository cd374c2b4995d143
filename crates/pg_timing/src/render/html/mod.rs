//! HTML pages in one file: without scripts, without external resources, for light and dark mode, for paper and phones.

mod clocks;
pub mod explain;
mod findings;
mod histogram;
mod host;
mod hosts;
mod kernel;
pub mod log;
mod page;
mod plan;
pub mod plans;
pub mod report;
mod shares;
mod skew;
mod skew_matrix;
mod verdict;
