//! The JSON Schemas in docs/, and reports that are read back.

use super::compare::Comparison;
use super::*;
use schemars::JsonSchema;
use serde_json::Value;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

fn schema<R: JsonSchema>() -> String {
    // The schemas describe what the program writes. It also reads reports in which fields are missing.
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    // The order of the program's maps is that of insertion. The order of the names is better for a file that people compare.
    let mut schema = settings.into_generator().into_root_schema_for::<R>().to_value();
    schema.sort_all_objects();
    remove_defaults(&mut schema);
    let schema = schemars::Schema::try_from(schema).expect("it was a schema before");
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

/// Removes the values of fields that are missing in a report, because the program writes these fields.
fn remove_defaults(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.shift_remove("default");
            fields.values_mut().for_each(remove_defaults);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_defaults),
        _ => {}
    }
}

/// `make schema` runs this test with `UPDATE_SCHEMA=1`, which writes the schemas.
#[test]
fn committed_schemas_match_the_code() {
    for (name, schema) in [
        ("check", schema::<Report>()),
        ("test", schema::<TestReport>()),
        ("explain", schema::<ExplainReport>()),
        ("explain-against", schema::<StatementComparison>()),
        ("explain-log", schema::<LogReport>()),
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

/// The whole JSON of every captured host reads back, and writes the same JSON again.
#[test]
fn reports_of_captured_hosts_survive_a_round_trip() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/snapshots");
    let mut hosts = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !(name.contains("__captured__") && name.ends_with(".json.snap")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let json = &text[text.find("\n{").unwrap()..];
        let report: Report = serde_json::from_str(json).unwrap_or_else(|error| panic!("{name}: {error}"));
        let written: Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_value(&report).unwrap(), written, "{name}");
        hosts += 1;
    }
    assert!(hosts > 20, "{hosts}");
}

#[test]
fn missing_fields_are_unavailable() {
    let report = Report::from_json(br#"{"clocks": [{"name": "system", "read_ns": 20.0}]}"#).unwrap();
    assert_eq!(report.system().and_then(|clock| clock.read_ns), Some(20.0));
    assert_eq!(report.host.kernel, Fact::unavailable("not in the input"));
    for other in ["", "{}", "[1]", r#"{"clocks": 7}"#, r#"{"clocks": [7]}"#] {
        assert!(Report::from_json(other.as_bytes()).is_err(), "{other}");
    }
}
