//! Keys of the JSON format that need special treatment in the text format.

pub const STARTUP_TIME: &str = "Actual Startup Time";
pub const TOTAL_TIME: &str = "Actual Total Time";
pub const ROWS: &str = "Actual Rows";
pub const LOOPS: &str = "Actual Loops";
pub const EXECUTION_TIME: &str = "Execution Time";
pub const PLANNING_TIME: &str = "Planning Time";
pub const PLANS: &str = "Plans";
pub const WORKERS: &str = "Workers";
pub const WORKER_NUMBER: &str = "Worker Number";
pub const SUBPLAN: &str = "Subplan Name";
pub const GROUPING_SETS: &str = "Grouping Sets";
pub const TARGET_TABLES: &str = "Target Tables";

/// pg_timing's own property. EXPLAIN does not have it. pev2 takes a line without indentation for a part of the line before,
/// unless it begins with `Time` or one of a few other words.
pub const CORRECTION: &str = "Time Correction";

/// The text format shows these on the node's first line, and others by the tree.
pub const ON_NODE_LINE: [&str; 29] = [
    "Node Type",
    "Strategy",
    "Partial Mode",
    "Operation",
    "Parent Relationship",
    SUBPLAN,
    "Custom Plan Provider",
    "Parallel Aware",
    "Async Capable",
    "Join Type",
    "Scan Direction",
    "Index Name",
    "Relation Name",
    "Function Name",
    "Table Function Name",
    "Tuplestore Name",
    "CTE Name",
    "Schema",
    "Alias",
    "Command",
    "Startup Cost",
    "Total Cost",
    "Plan Rows",
    "Plan Width",
    STARTUP_TIME,
    TOTAL_TIME,
    ROWS,
    LOOPS,
    PLANS,
];

/// The text format shows these only if they are true.
pub const ONLY_IF_TRUE: [&str; 3] = ["Disabled", "Single Copy", "Inner Unique"];

/// The text format shows this one only with VERBOSE.
pub const ONLY_IF_VERBOSE: &str = "Inner Unique";

/// Only with VERBOSE, the text format shows these.
pub const VERBOSE: [&str; 2] = ["Output", "Schema"];

/// JSON has a list, and the text format has its elements on one line.
pub const LISTS: [&str; 7] = [
    "Output",
    "Sort Key",
    "Presorted Key",
    "Group Key",
    "Conflict Arbiter Indexes",
    "Params Evaluated",
    "Sampling Parameters",
];

/// Groups of an Incremental Sort.
pub const SORT_GROUPS: [&str; 2] = ["Full-sort Groups", "Pre-sorted Groups"];

/// Where an Incremental Sort stored its rows.
pub const SORT_SPACES: [&str; 2] = ["Memory", "Disk"];

/// Returns whether the text format shows this count only if it is more than 0.
pub fn only_if_positive(key: &str) -> bool {
    key.starts_with("Rows Removed by ") || key == "Subplans Removed"
}
