//! Fitted figures of call_cost.rs. `tests/explain/call_costs fit` prints this file.

/// A node adds a part to the first 100 ns of a call.
pub const NODE_NS: f64 = 100.0;
/// The rest of a call differs by this fraction of that.
pub const SLOW_PART: f64 = 0.1;
/// Clock reads also slow the work between them: by up to this part of the reported time.
pub const WORK_ERROR: f64 = 0.03;
/// The cost of row counting per call, in reads of the system clock.
pub const COUNTING_READS: f64 = 0.28;
/// The limits of the estimated cost of row counting per call, in ns. Buffer counting costs the same again.
pub const COUNTING_NS: (f64, f64) = (4.0, 12.0);
/// Reads per call, if only the read cost is known.
pub const CALL_READS: f64 = 2.0;
/// The part that a node adds to a call.
pub const NODE_PART: f64 = 0.10;
/// Relative error of a plan's overhead if the cost of a timed call was measured, for read costs below the first figure in ns.
pub const ERRORS: [(f64, f64); 2] = [(100.0, 0.29), (f64::INFINITY, 0.15)];
/// The same if only the read cost is known.
pub const READ_COST_ERRORS: [(f64, f64); 2] = [(100.0, 0.47), (f64::INFINITY, 0.30)];
