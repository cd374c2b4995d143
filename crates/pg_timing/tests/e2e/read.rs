//! `pg_timing read`: outputs as people posted them, and what a reader should learn.

use super::{fixture, fixtures, pg_timing, ran};

fn read(name: &str) -> (i32, String) {
    let (status, stdout, stderr) = ran(pg_timing().arg("read").arg(fixture("pg_test_timing").join(name)));
    assert_eq!(stderr, "");
    (status, stdout)
}

/// Whole outputs: what each teaches stands in the snapshot, and the status beside it.
#[test]
fn every_fixture() {
    let names = fixtures("pg_test_timing");
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let (status, stdout) = read(&name);
        insta::assert_snapshot!(
            format!("read_{}", name.trim_end_matches(".txt")),
            format!("{stdout}status {status}\n")
        );
    }
}

#[test]
fn several_outputs_are_judged_one_by_one_and_the_worst_counts() {
    let text = |name: &str| std::fs::read_to_string(fixture("pg_test_timing").join(name)).unwrap();
    let both = text("i7-860-tsc.txt") + &text("i7-860-acpi_pm.txt");
    let (status, stdout, _) = ran(pg_timing().args(["read", "-", "--format", "json"]).write_stdin(both));
    assert_eq!(status, 2);
    let documents = serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>();
    let severities: Vec<String> =
        documents.map(|r| r.unwrap()["verdict"]["severity"].as_str().unwrap().to_string()).collect();
    assert_eq!(severities, ["ok", "critical"]);
}

#[test]
fn a_kernel_log_is_named_as_such() {
    let log = "[    0.000000] tsc: Detected 2900.000 MHz processor\n";
    let (status, stdout, stderr) = ran(pg_timing().args(["read", "-"]).write_stdin(log));
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert!(stderr.contains("kernel log") && stderr.contains("--kernel-log"), "{stderr}");
}
