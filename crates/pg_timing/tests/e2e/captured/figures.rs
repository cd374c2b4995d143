//! Other figures in the tree of a good host: the limits of the read cost.

use super::super::{alarms, findings, json};
use super::{copy_tree, host, report};

/// PostgreSQL's documentation calls 100 ns good. From 500 ns, a node's time is mostly its clock reads.
#[test]
fn read_cost_decides_whether_the_clock_is_slow() {
    let path = "pg_timing/measured.json";
    let good_host = host("kvm-tsc");
    let mut measured = json(&std::fs::read_to_string(good_host.join(path)).unwrap());
    let tree = copy_tree(&good_host, path);
    for (read_ns, spread_ns, status, severity) in [
        (20.0, 1.0, 0, "ok"),
        (99.0, 0.0, 0, "ok"),
        (101.0, 0.0, 1, "warning"),
        (101.0, 2.0, 0, "ok"),
        (499.0, 0.0, 1, "warning"),
        (501.0, 0.0, 2, "critical"),
        (501.0, 2.0, 1, "warning"),
        (790.0, 10.0, 2, "critical"),
        (7400.0, 100.0, 2, "critical"),
    ] {
        assert_eq!(measured["clocks"][0]["name"], "system");
        measured["clocks"][0]["read_ns"] = read_ns.into();
        measured["clocks"][0]["read_spread_ns"] = spread_ns.into();
        std::fs::write(tree.path().join(path), measured.to_string()).unwrap();
        let (actual_status, report) = report(tree.path());
        assert_eq!((actual_status, &report["verdict"]["severity"]), (status, &severity.into()), "{read_ns} ns");
        assert!(findings(&report).contains(&("clock-slow", severity)), "{read_ns} ns: {:?}", findings(&report));
        let other_alarms: Vec<_> = alarms(&report).into_iter().filter(|(id, _)| *id != "clock-slow").collect();
        assert_eq!(other_alarms, [], "{read_ns} ns");
    }
}

/// A hypervisor that intercepts RDTSC makes it slower than the system clock, and PostgreSQL 19 uses it by default.
#[test]
fn tsc_that_is_emulated_is_critical() {
    let path = "pg_timing/measured.json";
    let good_host = host("kvm-tsc");
    let mut measured = json(&std::fs::read_to_string(good_host.join(path)).unwrap());
    let tree = copy_tree(&good_host, path);
    for clock in measured["clocks"].as_array_mut().unwrap() {
        if clock["name"].as_str().unwrap().contains("rdtsc") {
            clock["read_ns"] = 1400.0.into();
        }
    }
    std::fs::write(tree.path().join(path), measured.to_string()).unwrap();
    let (status, report) = report(tree.path());
    assert_eq!((status, alarms(&report)), (2, vec![("tsc-slow", "critical")]));
    let finding = report["findings"].as_array().unwrap().iter().find(|f| f["id"] == "tsc-slow").unwrap();
    let command = finding["fix"][0]["command"].as_str().unwrap();
    assert!(command.contains("timing_clock_source = 'system'"), "{finding}");
    assert!(!report["verdict"]["summary"].as_str().unwrap().contains("with PostgreSQL 19's tsc"), "{report}");
}
