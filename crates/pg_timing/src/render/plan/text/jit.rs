//! The lines of the JIT compiler.

use crate::plan_format::{Properties, shown};
use serde_json::Value;

/// Returns the lines of the JIT compiler.
pub fn jit(group: &Properties) -> Vec<String> {
    let mut lines = vec!["JIT:".to_string()];
    for (key, value) in group {
        let parts = value.as_object().into_iter().flatten().map(|(name, value)| format!("{name} {}", jit_part(value)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        lines.push(format!("  {key}: {}", if value.is_object() { parts } else { shown(value) }));
    }
    lines
}

/// Returns `true`, `1.234 ms`, or `1.234 ms (Deform 0.123 ms)`.
fn jit_part(value: &Value) -> String {
    let ms = |value: &Value| value.as_f64().map(|ms| format!("{ms:.3} ms"));
    match value {
        Value::Object(times) => {
            let parts = times.iter().filter(|(name, _)| *name != "Total");
            let parts: Vec<String> = parts.map(|(name, value)| format!("{name} {}", jit_part(value))).collect();
            format!("{} ({})", times.get("Total").and_then(ms).unwrap_or_default(), parts.join(", "))
        }
        value => ms(value).unwrap_or_else(|| shown(value)),
    }
}
