//! JSON output, and JSON from files.

use crate::escape::is_unsafe;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Keys of values that quote a client. What is in them was not logged.
const QUOTES: &str = "statement query detail context hint internal_query error_query sql query_text parameters";

/// Returns whether the value of a key quotes a client.
pub fn is_quote(key: &str) -> bool {
    QUOTES.split(' ').any(|quote| quote == key)
}

/// Returns any report as JSON, on several lines.
pub fn json(report: &impl Serialize) -> String {
    // Figures are finite: JSON has no infinities, and serde_json writes them as null.
    let text = serde_json::to_string_pretty(report).expect("a report has no map with keys that are not strings");
    escaped(&text) + "\n"
}

/// Returns any report as JSON, on one line.
pub fn json_line(report: &impl Serialize) -> String {
    let text = serde_json::to_string(report).expect("a report has no map with keys that are not strings");
    escaped(&text) + "\n"
}

/// Returns JSON that is safe to print. JSON's own escapes do not cover all such characters. Readers get the same
/// values.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c != '\n' && is_unsafe(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe += &format!("\\u{unit:04x}")),
            false => safe.push(c),
        }
    }
    safe
}

/// Returns a value from JSON, or an error for a figure that none has. A file may contain anything.
pub fn possible<T: DeserializeOwned>(json: Value) -> Result<T, String> {
    check_figures("", &json)?;
    serde_json::from_value(json).map_err(|error| error.to_string())
}

fn check_figures(name: &str, value: &Value) -> Result<(), String> {
    /// More than any identifier, and any count of ns.
    const MAX: f64 = 1e20;
    /// A share of the reported time. A wrong read cost leads to more than 1.
    const MAX_SHARE: f64 = 1e6;
    match value {
        Value::Number(number) => {
            let possible = match name {
                "low_ns" | "high_ns" | "by_ns" => -MAX..=MAX,
                name if name.ends_with("_ns") || name == "uncertainty_ppm" => 0.0..=MAX,
                name if name.ends_with("_khz") => 1.0..=1e9,
                name if name.ends_with("_share") => -MAX_SHARE..=MAX_SHARE,
                _ => -MAX..=MAX,
            };
            match number.as_f64().is_some_and(|figure| possible.contains(&figure)) {
                true => Ok(()),
                false => Err(format!("the figure {number} of {name} is impossible")),
            }
        }
        Value::Array(values) => values.iter().try_for_each(|value| check_figures(name, value)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            // A range has the name of its figure. A bound of a time can be negative.
            let is_bound = matches!(key.as_str(), "low" | "estimate" | "high");
            check_figures(if is_bound { name.trim_end_matches("_ns") } else { key }, value)
        }),
        _ => Ok(()),
    }
}

/// Returns the name of a value in JSON, which is also its name in a label.
pub fn name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| Some(name.as_str()?.to_string())).unwrap_or("unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn json_keeps_its_values(text in any::<String>()) {
            let escaped = escaped(&serde_json::to_string(&text).unwrap());
            prop_assert!(!escaped.chars().any(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
