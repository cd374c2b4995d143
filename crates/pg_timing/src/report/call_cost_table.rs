//! Fitted figures of call_cost.rs. `tests/explain/call_costs fit` printed this file.

/// The processor overlaps at most this much of a read with other work.
pub const OVERLAP_NS: f64 = 50.0;
/// Reads per call beyond the overlap.
pub const SLOW_READS: f64 = 2.1;
/// Reads per call of a kind that was not measured.
pub const ANY_KIND: f64 = 1.6;
/// Kind of node, whether it is on the inner side of a nested loop, and reads per call.
pub const KINDS: [(&str, bool, f64); 2] = [("Aggregate", false, 1.6), ("Seq Scan", false, 1.6)];
/// Relative error of a plan's overhead, for read costs below the first figure in ns.
pub const ERRORS: [(f64, f64); 2] = [(100.0, 0.4), (f64::INFINITY, 0.3)];
