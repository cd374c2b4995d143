//! What reports say in words: the same in every output.

mod captured;
pub mod explain;
mod figures;

pub use figures::{digits, ms, per_call, with_error};
