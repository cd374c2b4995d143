//! `--root`: the facts of a captured tree. Nothing is measured, and nothing of this machine slips in.

use super::{alarms, fixture, json, pg_timing, ran};

#[test]
fn an_empty_tree_tells_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = ran(pg_timing().arg("--root").arg(empty.path()).args(["--format", "json"]));
    let report = json(&stdout);
    assert_eq!((status, stderr.as_str()), (3, ""));
    assert_eq!(report["verdict"]["severity"], "unknown");
    assert!(report["host"]["kernel"]["unavailable"].is_string(), "{report}");
    assert!(report["findings"].as_array().unwrap().iter().all(|f| f["severity"] == "unknown"), "{report}");
    assert_eq!(report["clocks"].as_array().unwrap().len(), 0);
}

/// A virtual machine whose kernel has given up the TSC for hpet.
#[test]
fn a_demoted_tsc_is_seen_in_the_facts() {
    let (status, stdout, _) =
        ran(pg_timing().arg("--root").arg(fixture("hosts/demoted-hpet")).args(["--format", "json"]));
    let report = json(&stdout);
    let warning = |id: &str| (id.to_string(), "warning".to_string());
    assert_eq!(alarms(&report), [warning("tsc-demoted"), warning("clocksource-slow"), warning("clocksource-changed")]);
    assert_eq!(status, 1);
    assert_eq!(report["clocksource"]["current"], "hpet");
    assert_eq!(report["tsc"]["claims"][0]["frequency_khz"], 2_900_000.0);
}

#[test]
fn its_text() {
    let (_, stdout, _) = ran(pg_timing().arg("--root").arg(fixture("hosts/demoted-hpet")));
    insta::assert_snapshot!(stdout);
}
