//! `pg_timing read` on published outputs of pg_test_timing.

use super::{alarms, fixture, fixtures, json, pg_timing, run};

#[test]
fn text_of_every_fixture() {
    let names = fixtures("pg_test_timing");
    assert_eq!(names.len(), 17, "{names:?}");
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

/// The alarms of real outputs with faults.
#[test]
fn faults_are_alarms() {
    let read = |name: &str| {
        let mut command = pg_timing();
        command.arg("read").arg(fixture("pg_test_timing").join(name)).args(["--format", "json"]);
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!(stderr, "");
        (status, json(&stdout))
    };
    for coarse in ["pg15-coarse.txt", "pg19-coarse.txt"] {
        let (status, report) = read(coarse);
        assert_eq!((status, alarms(&report)), (2, vec![("clock-slow", "warning"), ("clock-coarse", "critical")]));
    }
    // A library makes reads cost 0.2 us. The interruptions do not count in that.
    for busy in ["pg15-busy.txt", "pg19-busy.txt"] {
        let (status, report) = read(busy);
        assert_eq!((status, alarms(&report)), (1, vec![("clock-slow", "warning"), ("clock-gaps", "warning")]));
        assert!(report["clocks"][0]["undisturbed_ns"].as_f64().unwrap() < 250.0, "{report}");
    }
    let (status, report) = read("pg19-trapped-tsc.txt");
    assert_eq!((status, alarms(&report)), (2, vec![("tsc-slow", "critical")]));
    let findings = report["findings"].as_array().unwrap();
    let slow = findings.iter().find(|finding| finding["id"] == "tsc-slow").unwrap();
    assert!(slow["fix"][0]["command"].as_str().unwrap().contains("timing_clock_source = 'system'"), "{slow}");
}

/// Up to version 18, readings are cut to microseconds before the subtraction. So a difference of 1 us is no duration of 1
/// to 2 us: it only means that the microsecond changed in between.
#[test]
fn rows_of_a_classic_table_overlap() {
    let mut command = pg_timing();
    command.arg("read").arg(fixture("pg_test_timing/i7-860-acpi_pm.txt")).args(["--format", "json"]);
    let report = json(&run(&mut command).1);
    let rows = report["clocks"][0]["histogram"].as_array().unwrap();
    let bounds: Vec<_> =
        rows.iter().map(|row| (row["ge_ns"].as_u64().unwrap(), row["le_ns"].as_u64().unwrap())).collect();
    assert_eq!(bounds, [(0, 999), (0, 1999), (1000, 3999), (3000, 7999), (7000, 15_999)]);
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
