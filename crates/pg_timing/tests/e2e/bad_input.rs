//! One clear line, a hint, a status; nothing on stdout.

use super::refused;

#[test]
fn durations_that_are_none() {
    for value in ["0", "-1", "-0.5", "1e300", "inf", "nan", "x", "", "4s"] {
        assert!(refused(&["-d", value]).contains("--duration"), "{value}");
        assert!(refused(&["check", "--duration", value]).contains("--duration"), "{value}");
    }
    for value in ["0", "-1", "4294967296", "1.5", "nan", "x", ""] {
        assert!(refused(&["test", "-d", value]).contains("--duration"), "{value}");
    }
}

#[test]
fn windows_that_show_nothing() {
    for value in ["0", "-1", "1.9", "nan", "x", "", "1e9"] {
        assert!(refused(&["advise", "--window", value]).contains("--window"), "{value}");
    }
}

#[test]
fn cutoffs_out_of_range() {
    for value in ["-0.1", "100.1", "1e9", "nan", "x", ""] {
        assert!(refused(&["test", "-c", value]).contains("--cutoff"), "{value}");
    }
}

#[test]
fn commands_and_options_that_do_not_exist() {
    for arguments in
        [&["frob"][..], &["--frob"], &["check", "surplus"], &["read"], &["test", "--format", "20"], &["-h"]]
    {
        refused(arguments);
    }
}

#[test]
fn files_that_cannot_be_read() {
    assert!(refused(&["read", "/nonexistent"]).contains("No such file"));
    assert!(refused(&["read", "/"]).contains("Is a directory"));
    assert!(refused(&["read", "/bin/sh"]).contains("not text"));
    assert!(refused(&["--kernel-log", "/nonexistent"]).contains("kernel log"));
    assert!(refused(&["--kernel-log", env!("CARGO_BIN_EXE_pg_timing")]).contains("not text"));
    assert!(refused(&["--root", "/nonexistent"]).contains("not a directory"));
    assert!(refused(&["read", "/dev/null"]).contains("/dev/null"));
}

#[test]
fn a_full_disk_under_stdout() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pg_timing")).args(["-d", "0.1"]).stdout(full).output();
    let output = output.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_eq!(stderr, "pg_timing: error: could not write to stdout: No space left on device\n");
}

#[test]
fn a_reader_that_went_away() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_pg_timing")).args(["-d", "0.1"]).stdout(writer).output();
    let output = output.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_eq!(stderr, "pg_timing: error: could not write to stdout: Broken pipe\n");
}
