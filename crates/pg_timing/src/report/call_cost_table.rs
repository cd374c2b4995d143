//! Fitted figures of call_cost.rs. `tests/explain/call_costs fit` prints this file.

/// Kinds of nodes differ by a part of the first 100 ns of a call.
pub const KINDS_NS: f64 = 100.0;
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
/// The part that is added for a kind that was not measured.
pub const ANY_KIND: f64 = 0.08;
/// Kind of node, whether it is on the inner side of a nested loop, and the part that is added to a call.
#[rustfmt::skip]
pub const KINDS: [(&str, bool, f64); 36] = [
    ("Aggregate", false, 0.08),
    ("Append", false, 0.00),
    ("Bitmap Heap Scan", false, 0.08),
    ("Bitmap Heap Scan", true, 0.09),
    ("Bitmap Index Scan", false, 0.08),
    ("BitmapOr", false, 0.08),
    ("CTE Scan", false, 0.14),
    ("Function Scan", false, 0.05),
    ("Group", false, 0.10),
    ("Hash", false, 0.08),
    ("Hash Join", false, 0.31),
    ("Incremental Sort", false, 0.09),
    ("Index Only Scan", false, 0.04),
    ("Index Only Scan", true, 0.04),
    ("Index Scan", false, 0.04),
    ("Index Scan", true, 0.17),
    ("Limit", false, 0.09),
    ("LockRows", false, 0.09),
    ("Materialize", true, 0.01),
    ("Memoize", true, 0.07),
    ("Merge Join", false, 0.02),
    ("ModifyTable", false, 0.08),
    ("Nested Loop", false, 0.04),
    ("Nested Loop", true, 0.08),
    ("ProjectSet", false, 0.08),
    ("Recursive Union", false, 0.03),
    ("Result", true, 0.03),
    ("Sample Scan", false, 0.12),
    ("Seq Scan", false, 0.11),
    ("SetOp", false, 0.11),
    ("Sort", false, 0.15),
    ("Subquery Scan", false, 0.05),
    ("Tid Range Scan", false, 0.06),
    ("Unique", false, 0.05),
    ("WindowAgg", false, 0.09),
    ("WorkTable Scan", false, -0.02),
];
/// Relative error of a plan's overhead if the cost of a timed call was measured, for read costs below the first figure in ns.
pub const ERRORS: [(f64, f64); 2] = [(100.0, 0.27), (f64::INFINITY, 0.15)];
/// The same if only the read cost is known.
pub const READ_COST_ERRORS: [(f64, f64); 2] = [(100.0, 0.45), (f64::INFINITY, 0.30)];
