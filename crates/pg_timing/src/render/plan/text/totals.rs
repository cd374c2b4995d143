//! The lines below the tree.

use super::jit::jit;
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
