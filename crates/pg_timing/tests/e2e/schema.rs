//! The committed JSON Schemas match the code, and real reports match the schema.

use super::{fixture, json, pg_timing, run};

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.schema.json");
pub const EXPLAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.schema.json");
const CLASSIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain-test.schema.json");
const ADVISE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/advise.schema.json");

/// `make schema` runs this test with `UPDATE_SCHEMA=1`, which writes the schemas.
#[test]
fn committed_schemas_match_the_code() {
    use pg_timing::render::json::schema;
    use pg_timing::report::{AdviseReport, ClassicReport, ExplainReport, Report};
    for (path, schema) in [
        (CHECK, schema::<Report>()),
        (EXPLAIN, schema::<ExplainReport>()),
        (CLASSIC, schema::<ClassicReport>()),
        (ADVISE, schema::<AdviseReport>()),
    ] {
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), schema, "update the schemas: make schema");
    }
}

#[test]
fn reports_match_the_schema() {
    let schema = json(&std::fs::read_to_string(CHECK).unwrap());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let captured = empty.path().to_str().unwrap().to_string();
    let output = fixture("pg_test_timing/docker-mac-hpet.txt").to_str().unwrap().to_string();
    for arguments in [vec!["-d", "0.3"], vec!["--root", &captured], vec!["read", &output]] {
        let (_, stdout, stderr) = run(pg_timing().args(&arguments).args(["--format", "json"]));
        let report = json(&stdout);
        let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{arguments:?}: {errors:?} {stderr}");
    }
}
