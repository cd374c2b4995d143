//! `pg_timing read` on published outputs of pg_test_timing.

use super::{fixture, fixtures, pg_timing, run};

#[test]
fn text_of_every_fixture() {
    let names = fixtures("pg_test_timing");
    assert_eq!(names.len(), 12, "{names:?}");
    for name in names {
        let (status, stdout, stderr) = run(pg_timing().arg("read").arg(fixture("pg_test_timing").join(&name)));
        assert_eq!(stderr, "", "{name}");
        let snapshot = format!("read_{}", name.trim_end_matches(".txt"));
        insta::assert_snapshot!(snapshot, format!("{stdout}status {status}\n"));
    }
}

#[test]
fn each_output_is_judged_and_the_worst_gives_the_status() {
    let text = |name: &str| std::fs::read_to_string(fixture("pg_test_timing").join(name)).unwrap();
    let both = text("i7-860-tsc.txt") + &text("i7-860-acpi_pm.txt");
    let (status, stdout, stderr) = run(pg_timing().args(["read", "-", "--format", "json"]).write_stdin(both));
    assert_eq!((status, stderr.as_str()), (2, ""));
    let documents = serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>();
    let severities: Vec<serde_json::Value> =
        documents.map(|report| report.unwrap()["verdict"]["severity"].clone()).collect();
    assert_eq!(severities, ["ok", "critical"]);
}

#[test]
fn kernel_log_is_recognized() {
    let log = "[    0.000000] tsc: Detected 2900.000 MHz processor\n";
    let (status, stdout, stderr) = run(pg_timing().args(["read", "-"]).write_stdin(log));
    assert_eq!((status, stdout.as_str()), (3, ""));
    let (error, hint) = stderr.split_once('\n').unwrap();
    assert!(error.contains("kernel log"), "{stderr}");
    assert_eq!(hint, "hint: for a kernel log, type: pg_timing check --kernel-log FILE\n");
}
