//! Tests of `clocksource` commands that change nothing. The tests in `crates/pg_timing/tests/switching` switch the clock source. They
//! are a separate program, because tests of this program measure the clock.

use super::{fixture, pg_timing, run};

const DIR: &str = "/sys/devices/system/clocksource/clocksource0";

fn refused(arguments: &[&str]) -> String {
    super::refused(&[&["clocksource"], arguments].concat())
}

#[test]
fn list_on_this_host() {
    let read = |name: &str| std::fs::read_to_string(format!("{DIR}/{name}_clocksource"));
    let (Ok(current), Ok(available)) = (read("current"), read("available")) else {
        assert!(refused(&[]).contains("sysfs"));
        return eprintln!("SKIPPED: this machine has no {DIR}");
    };
    for arguments in [&["clocksource"][..], &["clocksource", "list"]] {
        let (status, stdout, stderr) = run(pg_timing().args(arguments));
        assert_eq!((status, stderr.as_str()), (0, ""));
        let row = |name: &str| stdout.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        let current_row = row(current.trim());
        assert!(current_row.contains("current") && current_row.contains("(measured)"), "{stdout}");
        for name in available.split_whitespace().filter(|name| *name != current.trim()) {
            assert!(row(name).contains("available"), "{stdout}");
        }
    }
}

#[test]
fn list_of_captured_trees() {
    for host in ["docker-desktop-hpet", "ec2-xen", "azure-msr"] {
        let root = fixture("hosts").join(host);
        let (status, stdout, stderr) = run(pg_timing().args(["clocksource", "list", "--root"]).arg(&root));
        assert_eq!((status, stderr.as_str()), (0, ""), "{host}");
        // The list is the default.
        assert_eq!(run(pg_timing().args(["clocksource", "--root"]).arg(&root)).1, stdout);
        insta::assert_snapshot!(format!("list_{host}"), stdout);
    }
}

#[test]
fn list_without_clock_sources_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let stderr = refused(&["list", "--root", empty.path().to_str().unwrap()]);
    assert!(stderr.contains("current_clocksource: No such file or directory"), "{stderr}");
    assert!(refused(&["list", "--root", "/nonexistent"]).contains("--root \"/nonexistent\" is not a directory"));
}

#[test]
fn bad_arguments_are_refused() {
    for value in ["0", "0.9", "-1", "86401", "inf", "nan", "x", ""] {
        assert!(refused(&["use", "x", "--for", value]).contains("--for"), "{value}");
    }
    assert!(refused(&["use", "x", "--for", "10", "--keep"]).contains("--keep"));
    assert!(refused(&["use"]).contains("<NAME>"));
    for (arguments, word) in [
        (&["frob"][..], "'frob'"),
        (&["list", "x"], "'x'"),
        (&["use", "x", "y"], "'y'"),
        (&["use", "x", "--root", "/"], "'--root'"),
        (&["--root", "/", "use", "x"], "'--root"),
    ] {
        assert!(refused(arguments).contains(word), "{arguments:?}");
    }
}

#[test]
fn unknown_clock_source_is_refused() {
    if std::fs::metadata(DIR).is_err() {
        return eprintln!("SKIPPED: this machine has no {DIR}");
    }
    for name in ["flux-capacitor", "", "tsc kvm-clock", "../../x"] {
        let stderr = refused(&["use", name]);
        assert!(stderr.contains(&format!("does not offer a clock source {name:?}")), "{stderr}");
        assert!(stderr.contains("hint: available: "), "{stderr}");
    }
}
