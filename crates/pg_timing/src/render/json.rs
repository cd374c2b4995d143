//! JSON, and the schema of it: both come from the reports' types.

use schemars::JsonSchema;
use serde::Serialize;

/// Of whatever kind.
pub fn json(report: &impl Serialize) -> String {
    // Figures are finite: JSON has no infinities, and serde_json writes them as null.
    serde_json::to_string_pretty(report).expect("a report has no map with keys that are not strings") + "\n"
}

/// The JSON Schema of a report; committed as docs/check.schema.json and its like.
pub fn schema<R: JsonSchema>() -> String {
    let schema = schemars::schema_for!(R);
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}
