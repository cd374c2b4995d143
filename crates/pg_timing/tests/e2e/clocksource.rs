//! `clocksource` where it changes nothing. Real switches have a program of their own, in
//! `tests/switching.rs`: other tests here measure the very clock that they would switch.

use super::{fixture, pg_timing, ran};

const DIR: &str = "/sys/devices/system/clocksource/clocksource0";

fn refused(arguments: &[&str]) -> String {
    super::refused(&[&["clocksource"], arguments].concat())
}

#[test]
fn list_on_this_host() {
    let read = |name: &str| std::fs::read_to_string(format!("{DIR}/{name}_clocksource"));
    let (Ok(current), Ok(available)) = (read("current"), read("available")) else {
        eprintln!("SKIPPED: this machine has no {DIR}");
        assert!(refused(&[]).contains("sysfs"));
        return;
    };
    for arguments in [&["clocksource"][..], &["clocksource", "list"]] {
        let (status, stdout, stderr) = ran(pg_timing().args(arguments));
        assert_eq!((status, stderr.as_str()), (0, ""));
        let row = |name: &str| stdout.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        let in_use = row(current.trim());
        assert!(in_use.contains("current") && in_use.contains("(measured)"), "{stdout}");
        for name in available.split_whitespace().filter(|name| *name != current.trim()) {
            assert!(row(name).contains("available"), "{stdout}");
        }
    }
}

#[test]
fn list_of_captured_trees() {
    for host in ["docker-desktop-hpet", "ec2-xen", "azure-msr", "freebsd-hpet"] {
        let root = fixture("hosts").join(host);
        let (status, stdout, stderr) = ran(pg_timing().args(["clocksource", "list", "--root"]).arg(root));
        assert_eq!((status, stderr.as_str()), (0, ""), "{host}");
        insta::assert_snapshot!(format!("list_{host}"), stdout);
    }
}

#[test]
fn a_tree_without_clock_sources() {
    let empty = tempfile::tempdir().unwrap();
    let stderr = refused(&["list", "--root", empty.path().to_str().unwrap()]);
    assert!(stderr.contains("current_clocksource: No such file or directory"), "{stderr}");
    assert!(refused(&["list", "--root", "/nonexistent"]).contains("not a directory"));
}

#[test]
fn arguments_that_are_none() {
    for value in ["0", "0.9", "-1", "86401", "inf", "nan", "x", ""] {
        assert!(refused(&["use", "x", "--for", value]).contains("--for"), "{value}");
    }
    assert!(refused(&["use", "x", "--for", "10", "--keep"]).contains("--keep"));
    assert!(refused(&["use"]).contains("<NAME>"));
    for arguments in [&["frob"][..], &["list", "x"], &["use", "x", "y"], &["use", "x", "--root", "/"]] {
        refused(arguments);
    }
}

#[test]
fn a_clock_source_that_does_not_exist() {
    if std::fs::metadata(DIR).is_err() {
        return eprintln!("SKIPPED: this machine has no {DIR}");
    }
    for name in ["flux-capacitor", "", "tsc kvm-clock", "../../x"] {
        assert!(refused(&["use", name]).contains("available: "), "{name}");
    }
}
