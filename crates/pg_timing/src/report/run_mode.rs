//! Names of the modes in which a statement is run: [`super::RunSample::mode`].

/// Without EXPLAIN.
pub const BASELINE: &str = "baseline";
/// EXPLAIN ANALYZE, TIMING OFF.
pub const ROWS_ONLY: &str = "rows_only";
/// EXPLAIN ANALYZE as people type it.
pub const REPORTED: &str = "reported";
