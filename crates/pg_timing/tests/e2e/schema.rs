//! The committed schema is that of the code, and real reports keep to it.

use super::{fixture, json, pg_timing, ran};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.schema.json");
pub const EXPLAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.schema.json");
const CLASSIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain-test.schema.json");
const ADVISE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/advise.schema.json");

/// `UPDATE_SCHEMA=1 cargo test schema` writes it anew.
#[test]
fn the_committed_schemas_have_not_drifted() {
    use pg_timing::render::json::schema;
    use pg_timing::report::{AdviseReport, ClassicReport, ExplainReport, Report};
    for (path, schema) in [
        (COMMITTED, schema::<Report>()),
        (EXPLAIN, schema::<ExplainReport>()),
        (CLASSIC, schema::<ClassicReport>()),
        (ADVISE, schema::<AdviseReport>()),
    ] {
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), schema, "UPDATE_SCHEMA=1 cargo test schema");
    }
}

#[test]
fn reports_keep_to_it() {
    let schema = json(&std::fs::read_to_string(COMMITTED).unwrap());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let captured = empty.path().to_str().unwrap().to_string();
    let old = fixture("pg_test_timing/docker-mac-hpet.txt").to_str().unwrap().to_string();
    for arguments in [vec!["-d", "0.3"], vec!["--root", &captured], vec!["read", &old]] {
        let (_, stdout, stderr) = ran(pg_timing().args(&arguments).args(["--format", "json"]));
        let report = json(&stdout);
        let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{arguments:?}: {errors:?} {stderr}");
    }
}
