//! PostgreSQL's own kinds of nodes, and how many inputs they have.

/// Returns the least and the most inputs of a kind of node, without subplans. Returns `None` for nodes of extensions and
/// of PostgreSQL's relatives. They may run their inputs in parallel, on other servers, or without one call per row.
pub fn inputs(kind: &str) -> Option<(usize, usize)> {
    Some(match kind {
        "Seq Scan"
        | "Sample Scan"
        | "Index Scan"
        | "Index Only Scan"
        | "Bitmap Index Scan"
        | "Tid Scan"
        | "Tid Range Scan"
        | "Function Scan"
        | "Table Function Scan"
        | "Values Scan"
        | "CTE Scan"
        | "Named Tuplestore Scan"
        | "WorkTable Scan" => (0, 0),
        "Result" | "Foreign Scan" => (0, 1),
        "Aggregate" | "Bitmap Heap Scan" | "Gather" | "Gather Merge" | "Group" | "Hash" | "Incremental Sort"
        | "Limit" | "LockRows" | "Materialize" | "Memoize" | "ProjectSet" | "Sort" | "Subquery Scan" | "Unique"
        | "WindowAgg" => (1, 1),
        "Nested Loop" | "Hash Join" | "Merge Join" | "Recursive Union" => (2, 2),
        // two inputs since PostgreSQL 18
        "SetOp" => (1, 2),
        "Append" | "Merge Append" | "BitmapAnd" | "BitmapOr" | "ModifyTable" => (0, usize::MAX),
        _ => return None,
    })
}

pub fn is_known(kind: &str) -> bool {
    inputs(kind).is_some()
}

pub fn is_append(kind: &str) -> bool {
    ["Append", "Merge Append"].contains(&kind)
}
