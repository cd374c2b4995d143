//! JSON output.

use serde::Serialize;

/// Returns any report as JSON, on several lines.
pub fn json(report: &impl Serialize) -> String {
    // Figures are finite: JSON has no infinities, and serde_json writes them as null.
    let text = serde_json::to_string_pretty(report).expect("a report has no map with keys that are not strings");
    super::escape::json(&text) + "\n"
}

/// Returns any report as JSON, on one line.
pub fn json_line(report: &impl Serialize) -> String {
    let text = serde_json::to_string(report).expect("a report has no map with keys that are not strings");
    super::escape::json(&text) + "\n"
}
