//! Lists that YAML and XML do not mark as lists.

use serde_json::Value;

/// Returns the empty list, if EXPLAIN writes this list even if it has no elements. YAML and XML do not show that it is a
/// list.
pub fn empty(key: &str) -> Option<Value> {
    ["Triggers", "Workers", "Plans"].contains(&key).then(|| Value::Array(Vec::new()))
}
