//! `pg_timing compare` on captured hosts and on outputs of pg_test_timing.

use super::{fixture, fixtures, json, pg_timing, refused, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn output(name: &str) -> PathBuf {
    fixture("pg_test_timing").join(name)
}

/// Writes the JSON report of a captured host.
fn host(dir: &TempDir, name: &str) -> PathBuf {
    let (_, report, _) = run(pg_timing().args(["--format", "json", "--root"]).arg(fixture("hosts").join(name)));
    let path = dir.path().join(format!("{name}.json"));
    std::fs::write(&path, report).unwrap();
    path
}

/// Returns the exit status and the screen. A path in the directory of the first report does not contain it.
fn compare(before: &Path, after: &Path) -> (i32, String) {
    let dir = before.parent().unwrap();
    let paths = [before, after].map(|path| path.strip_prefix(dir).unwrap_or(path));
    let (status, stdout, stderr) = run(pg_timing().arg("compare").args(paths).current_dir(dir));
    assert_eq!(stderr, "", "{before:?} {after:?}");
    let wide = stdout.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{before:?} {after:?}");
    (status, stdout)
}

/// Returns the exit status and the report.
fn compare_json(before: &Path, after: &Path) -> (i32, Value) {
    let (status, stdout, stderr) = run(pg_timing().arg("compare").args([before, after]).args(["--format", "json"]));
    assert_eq!(stderr, "", "{before:?} {after:?}");
    (status, json(&stdout))
}

#[test]
fn screens() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(output("pg15.txt"), dir.path().join("pg15.txt")).unwrap();
    for (name, before, after, status) in [
        ("slower_clock", output("i7-860-tsc.txt"), output("i7-860-acpi_pm.txt"), 2),
        ("faster_clock", output("i7-860-acpi_pm.txt"), output("i7-860-tsc.txt"), 0),
        ("two_versions", output("pg15.txt"), output("pg19.txt"), 0),
        // pg_test_timing stops at the first backward step, and does not print how often it read.
        ("clock_went_back", output("docker-mac-hpet.txt"), output("docker-mac-warp.txt"), 2),
        ("no_loop_time", output("docker-mac-warp.txt"), output("docker-mac-hpet.txt"), 3),
        ("two_hosts", host(&dir, "kvm-tsc"), host(&dir, "docker-desktop-hpet"), 2),
        ("host_and_output", host(&dir, "kvm-tsc"), dir.path().join("pg15.txt"), 0),
    ] {
        let (actual, screen) = compare(&before, &after);
        assert_eq!(actual, status, "{name}: {screen}");
        insta::assert_snapshot!(name, screen);
    }
}

/// Two reports of one host under load, eight minutes apart. The explanation of a plan says so, too.
#[test]
fn a_busy_host_is_not_compared() {
    let [one, other] = ["busy-1.json", "busy-2.json"].map(|name| fixture("reports").join(name));
    let (status, screen) = compare(&one, &other);
    insta::assert_snapshot!("busy_host", screen);
    let (back, report) = compare_json(&other, &one);
    assert_eq!((status, back), (3, 3));
    assert_eq!(report["verdict"]["effect"], "not_compared");
    let is_change = |change: &Value| !["same", "not_compared"].contains(&change["effect"].as_str().unwrap());
    assert!(!report["changes"].as_array().unwrap().iter().any(is_change), "{report}");
    let plan = fixture("plans").join("docker-hpet.txt");
    let (_, screen, _) = run(pg_timing().args(["explain", "--host-report"]).arg(&one).arg("--plan").arg(plan));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("the read cost in the host report is uncertain (busy host: interruptions took 68%"),
        "{screen}"
    );
}

/// No pair has a line over 80 columns, and the exit status is that of the verdict.
#[test]
fn every_pair_of_outputs() {
    // A ticket with several outputs is refused.
    for before in fixtures("pg_test_timing").into_iter().filter(|name| name != "ticket.txt") {
        for after in ["i7-860-tsc.txt", "pg19-coarse.txt", "pg19-desktop-excerpt.txt", "pg15-busy.txt"] {
            let (status, _) = compare(&output(&before), &output(after));
            let (json_status, report) = compare_json(&output(&before), &output(after));
            let effect = report["verdict"]["effect"].as_str().unwrap();
            let expected = match effect {
                "same" | "changed" | "better" | "much_better" => 0,
                "worse" => 1,
                "much_worse" => 2,
                _ => 3,
            };
            assert_eq!((status, json_status), (expected, expected), "{before} {after} {effect}");
        }
    }
}

#[test]
fn the_json_report_matches_its_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compare.schema.json");
    let schema = json(&std::fs::read_to_string(path).unwrap());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (before, after) in [
        (output("i7-860-tsc.txt"), output("pg19.txt")),
        (host(&dir, "kvm-tsc"), host(&dir, "docker-desktop-hpet")),
        (host(&dir, "kvm-tsc"), output("docker-mac-warp.txt")),
    ] {
        let (_, report) = compare_json(&before, &after);
        let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// Reports of several hosts often have the same name.
#[test]
fn the_paths_tell_reports_of_one_name_apart() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        std::fs::copy(output("pg15.txt"), dir.path().join(name).join("out.txt")).unwrap();
    }
    for format in ["text", "json"] {
        let arguments = ["compare", "a/out.txt", "b/out.txt", "--format", format];
        let (_, stdout, _) = run(pg_timing().args(arguments).current_dir(&dir));
        assert!(stdout.contains("a/out.txt: ") && stdout.contains("b/out.txt: "), "{stdout}");
    }
}

#[test]
fn one_report_can_come_from_stdin() {
    let text = std::fs::read(output("i7-860-tsc.txt")).unwrap();
    let mut command = pg_timing();
    command.args(["compare", "-"]).arg(output("i7-860-acpi_pm.txt")).write_stdin(text);
    let (status, stdout, _) = run(&mut command);
    assert_eq!(status, 2);
    assert!(stdout.contains("\nbefore  stdin: pg_test_timing 9.2 to 18"), "{stdout}");
    assert!(refused(&["compare", "-", "-"]).contains("only one of the reports"));
}

#[test]
fn bad_input_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let good = output("i7-860-tsc.txt");
    let text = std::fs::read_to_string(&good).unwrap();
    let (_, explain, _) = run(pg_timing()
        .args(["explain", "--read-cost", "20", "--format", "json", "--plan"])
        .arg(fixture("plans").join("docker-hpet.txt")));
    let report = std::fs::read_to_string(host(&dir, "kvm-tsc")).unwrap();
    for (nth, (content, why)) in [
        (format!("{text}\n{text}"), "contains 2 reports, and compare needs one"),
        (std::fs::read_to_string(output("ticket.txt")).unwrap(), "contains 4 reports"),
        (format!("{report}\n{report}"), "contains 2 reports, and compare needs one"),
        (explain, "is a report of explain"),
        (String::new(), "found no output of pg_test_timing"),
        (report.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1), "has the JSON format 2"),
        ("{\"clocks\": 7}".into(), "is JSON, but not a report of check, read or explain"),
        ("{\"clocks\": ".into(), "ends too early"),
        ("nothing".into(), "found no output of pg_test_timing"),
        (report.replacen("\"read_ns\": ", "\"read_ns\": -", 1), "of read_ns is impossible"),
        (report.replacen("\"read_ns\": ", "\"read_ns\": 1e21, \"x\": ", 1), "of read_ns is impossible"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{nth}.txt"));
        std::fs::write(&path, content).unwrap();
        let stderr = refused(&["compare", good.to_str().unwrap(), path.to_str().unwrap()]);
        assert!(stderr.contains(why) && stderr.contains(&format!("{nth}.txt")), "{nth}: {stderr}");
    }
    let path = dir.path().join("newer.json");
    std::fs::write(&path, report.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1)).unwrap();
    let stderr = refused(&["compare", good.to_str().unwrap(), path.to_str().unwrap()]);
    assert!(
        stderr.contains("has the JSON format 2") && stderr.contains("hint: use the version of pg_timing"),
        "{stderr}"
    );
    assert!(refused(&["compare", "/nonexistent", "/nonexistent"]).contains("No such file"));
    assert!(refused(&["compare", "one.json"]).contains("<AFTER>"));
}

/// A shell's prompt can begin with a bracket, as JSON does.
#[test]
fn text_around_an_output_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.txt");
    let text = std::fs::read_to_string(output("i7-860-tsc.txt")).unwrap();
    std::fs::write(&path, format!("[postgres@db1 ~]$ pg_test_timing\n{text}")).unwrap();
    let (status, screen) = compare(&output("i7-860-tsc.txt"), &path);
    assert_eq!(status, 0);
    assert!(screen.lines().any(|line| line.starts_with("SAME  ")), "{screen}");
}

#[test]
fn the_help_states_the_rule() {
    let (status, help, _) = run(pg_timing().args(["compare", "--help"]));
    assert_eq!(status, 0);
    for words in ["Much worse (exit status 2)", "Worse (exit status 1)", "doubled", "100 ns", "5 ns", "noise"] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(run(pg_timing().arg("--help")).1.contains("of compare: 0 same or better, 1 worse, 2 much worse"));
}

/// PowerShell writes UTF-16.
#[test]
fn utf_16_has_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.json");
    let bytes: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    assert!(refused(&["compare", path, path]).contains("hint: convert it, for example with: iconv"));
}
