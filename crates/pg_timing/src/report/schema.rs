//! The JSON Schemas in docs/, generated from the reports' types.

use super::compare::Comparison;
use super::{AdviseReport, ClassicReport, ExplainReport, LogReport, MonitorEvent, Report, TestReport};
use schemars::JsonSchema;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

fn schema<R: JsonSchema>() -> String {
    // The order of the program's maps is that of insertion. The order of the names is better for a file that people compare.
    let mut schema = schemars::schema_for!(R).to_value();
    schema.sort_all_objects();
    let schema = schemars::Schema::try_from(schema).expect("it was a schema before");
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

/// `make schema` runs this test with `UPDATE_SCHEMA=1`, which writes the schemas.
#[test]
fn committed_schemas_match_the_code() {
    for (name, schema) in [
        ("check", schema::<Report>()),
        ("test", schema::<TestReport>()),
        ("explain", schema::<ExplainReport>()),
        ("explain-log", schema::<LogReport>()),
        ("explain-test", schema::<ClassicReport>()),
        ("advise", schema::<AdviseReport>()),
        ("monitor-event", schema::<MonitorEvent>()),
        ("compare", schema::<Comparison>()),
    ] {
        let path = format!("{DOCS}/{name}.schema.json");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), schema, "update the schemas: make schema");
    }
}
