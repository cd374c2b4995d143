//! Lists that YAML and XML do not mark as lists.

/// Returns whether EXPLAIN writes this list even if it has no elements. YAML and XML do not show that it is a list.
pub fn is_written_if_empty(key: &str) -> bool {
    ["Triggers", "Workers", "Plans"].contains(&key)
}
