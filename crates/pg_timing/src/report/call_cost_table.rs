//! Fitted figures of call_cost.rs. `tests/explain/call_costs fit` prints this file.

/// The processor overlaps at most this much of a read with other work.
pub const OVERLAP_NS: f64 = 50.0;
/// Reads per call, for the part of a read beyond the overlap.
pub const SLOW_READS: f64 = 2.1;
/// Reads per call of a kind that was not measured.
pub const ANY_KIND: f64 = 1.61;
/// Kind of node, whether it is on the inner side of a nested loop, and reads per call.
#[rustfmt::skip]
pub const KINDS: [(&str, bool, f64); 33] = [
    ("Aggregate", false, 1.32),
    ("Append", false, 1.54),
    ("Bitmap Heap Scan", false, 1.43),
    ("Bitmap Index Scan", false, 1.61),
    ("BitmapOr", false, 1.61),
    ("CTE Scan", false, 1.78),
    ("Function Scan", false, 1.58),
    ("Group", false, 1.71),
    ("Hash", false, 1.61),
    ("Hash Join", false, 1.84),
    ("Incremental Sort", false, 1.83),
    ("Index Only Scan", false, 1.48),
    ("Index Only Scan", true, 1.61),
    ("Index Scan", false, 1.69),
    ("Index Scan", true, 1.69),
    ("Limit", false, 1.64),
    ("LockRows", false, 1.74),
    ("Materialize", true, 1.65),
    ("Merge Join", false, 1.55),
    ("ModifyTable", false, 1.26),
    ("Nested Loop", false, 1.87),
    ("ProjectSet", false, 1.57),
    ("Recursive Union", false, 1.60),
    ("Result", true, 1.86),
    ("Sample Scan", false, 1.70),
    ("Seq Scan", false, 1.70),
    ("SetOp", false, 1.55),
    ("Sort", false, 1.61),
    ("Subquery Scan", false, 1.32),
    ("Tid Range Scan", false, 1.46),
    ("Unique", false, 1.54),
    ("WindowAgg", false, 1.61),
    ("WorkTable Scan", false, 1.60),
];
/// Relative error of a plan's overhead, for read costs below the first figure in ns.
pub const ERRORS: [(f64, f64); 2] = [(100.0, 0.38), (f64::INFINITY, 0.30)];
