//! The lines below the tree.

use super::properties;
use crate::plan_format::keys::{EXECUTION_TIME, PLANNING_TIME};
use crate::plan_format::lines::{SERIALIZATION, TRIGGER};
use crate::plan_format::{Properties, shown};
use serde_json::Value;

/// Appends the lines of a property of the whole plan.
pub fn write(key: &str, value: &Value, lines: &mut Vec<String>) {
    match (key, value) {
        ("Planning", Value::Object(group)) => {
            let used = below(group, &[]);
            lines.extend((!used.is_empty()).then(|| "Planning:".to_string()));
            lines.extend(used);
        }
        ("Triggers", Value::Array(triggers)) => lines.extend(triggers.iter().filter_map(Value::as_object).map(trigger)),
        ("JIT", Value::Object(group)) => lines.extend(jit(group)),
        ("Serialization", Value::Object(group)) => {
            lines.extend(SERIALIZATION.write(group));
            lines.extend(below(group, SERIALIZATION.keys));
        }
        ("Settings", Value::Object(settings)) if settings.is_empty() => {}
        ("Settings", Value::Object(settings)) => {
            let quoted = |(name, value): (&String, &Value)| format!("{name} = '{}'", shown(value).replace('\'', "''"));
            lines.push(format!("Settings: {}", settings.iter().map(quoted).collect::<Vec<_>>().join(", ")));
        }
        (PLANNING_TIME | EXECUTION_TIME, Value::Number(ms)) => {
            lines.push(format!("{key}: {:.3} ms", ms.as_f64().unwrap_or_default()));
        }
        _ => lines.push(format!("{key}: {}", shown(value))),
    }
}

fn below(group: &Properties, hidden: &[&'static str]) -> Vec<String> {
    properties::lines(group, hidden, true).iter().map(|line| format!("  {line}")).collect()
}

/// Returns `Trigger x on t: time=1.234 calls=5`. The text format of a server has only as many names as are necessary.
fn trigger(trigger: &Properties) -> String {
    let text = |before: &str, key: &str| {
        trigger.get(key).and_then(Value::as_str).map_or(String::new(), |name| format!("{before}{name}"))
    };
    ["Trigger".into(), text(" ", "Trigger Name"), text(" for constraint ", "Constraint Name"), text(" on ", "Relation")]
        .concat()
        + &TRIGGER.write(trigger).unwrap_or_default()
}

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
