//! JSON output.

use crate::escape::is_unsafe;
use serde::Serialize;

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
