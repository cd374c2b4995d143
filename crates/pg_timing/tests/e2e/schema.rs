//! Real reports match the committed JSON Schemas.

use super::{fixture, json, pg_timing, run};

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.schema.json");
const TEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/test.schema.json");
pub const EXPLAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.schema.json");

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

#[test]
fn the_test_matches_its_schema() {
    let validator = jsonschema::validator_for(&json(&std::fs::read_to_string(TEST).unwrap())).unwrap();
    let (_, stdout, stderr) = run(pg_timing().args(["test", "-d", "1", "--format", "json"]));
    let report = json(&stdout);
    let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
    assert!(errors.is_empty() && report["clocks"][0]["reads"].as_u64() > Some(1000), "{errors:?} {stderr}");
}
