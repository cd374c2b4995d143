//! Bad input leads to one error line, one hint line and status 3, and stdout stays empty.

use super::refused;

#[test]
fn bad_durations_are_refused() {
    for value in ["0", "-1", "-0.5", "1e300", "inf", "nan", "x", "", "4s"] {
        assert!(refused(&["-d", value]).contains("--duration"), "{value}");
        assert!(refused(&["check", "--duration", value]).contains("--duration"), "{value}");
    }
    for value in ["0", "-1", "4294967296", "1.5", "nan", "x", ""] {
        assert!(refused(&["test", "-d", value]).contains("--duration"), "{value}");
    }
}

#[test]
fn bad_windows_are_refused() {
    for value in ["0", "-1", "1.9", "nan", "x", "", "1e9"] {
        assert!(refused(&["advise", "--window", value]).contains("--window"), "{value}");
    }
}

#[test]
fn bad_cutoffs_are_refused() {
    for value in ["-0.1", "100.1", "1e9", "nan", "x", ""] {
        assert!(refused(&["test", "-c", value]).contains("--cutoff"), "{value}");
    }
}

#[test]
fn unknown_commands_and_options_are_refused() {
    for (arguments, word, help) in [
        (&["frob"][..], "'frob'", "pg_timing --help"),
        (&["--frob"], "'--frob'", "pg_timing --help"),
        (&["check", "surplus"], "'surplus'", "pg_timing check --help"),
        (&["read"], "<FILE|->", "pg_timing read --help"),
        (&["test", "--format", "20"], "'20'", "pg_timing test --help"),
        (&["-h"], "'-h'", "pg_timing --help"),
    ] {
        let stderr = refused(arguments);
        let (error, hint) = stderr.split_once('\n').unwrap();
        assert!(error.contains(word), "{arguments:?}: {stderr}");
        assert_eq!(hint, format!("hint: try \"{help}\"\n"), "{arguments:?}");
    }
}

#[test]
fn what_was_meant_is_suggested() {
    for (arguments, hint) in [
        (&["explains"][..], "did you mean explain?"),
        (&["explain", "--formats", "json"], "did you mean --format?"),
        (&["help"], "try \"pg_timing --help\""),
        (&["explain", "SELECT 1"], "give the statement with -c"),
        (&["explain", "with a AS (TABLE b) TABLE a"], "give the statement with -c"),
    ] {
        let stderr = refused(arguments);
        assert!(stderr.contains(&format!("\nhint: {hint}")), "{arguments:?}: {stderr}");
    }
}

/// Nothing is sent to a server, and no value is printed.
#[test]
fn values_without_parameters_are_refused() {
    let refused = |arguments: &[&str], what: &str| {
        let stderr = refused(&[&["explain", "-h", "/nonexistent", "--param", "-hunter2"], arguments].concat());
        assert!(stderr.contains(what) && !stderr.contains("hunter"), "{stderr}");
    };
    refused(&[], "--param needs a statement");
    refused(&["-c", "SELECT 1"], "differ in number: 0 and 1");
    refused(&["-c", "SET jit = off", "-c", "SELECT $2"], "differ in number: 2 and 1");
    refused(&["--plan", "x", "--read-cost", "20"], "cannot be used with");
}

#[test]
fn unreadable_files_are_refused() {
    assert!(refused(&["read", "/nonexistent"]).contains("could not read \"/nonexistent\": No such file or directory"));
    assert!(refused(&["read", "/"]).contains("could not read \"/\": Is a directory"));
    assert!(refused(&["read", "/bin/sh"]).contains("not text"));
    assert!(refused(&["--kernel-log", "/nonexistent"]).contains("could not read \"/nonexistent\""));
    assert!(refused(&["--kernel-log", env!("CARGO_BIN_EXE_pg_timing")]).contains("not text"));
    let long = tempfile::NamedTempFile::new().unwrap();
    long.as_file().set_len((64 << 20) + 1).unwrap();
    let stderr = refused(&["--kernel-log", long.path().to_str().unwrap()]);
    assert!(stderr.contains("is longer than 64 MB") && stderr.contains("journalctl -k -b"), "{stderr}");
    assert!(refused(&["--root", "/nonexistent"]).contains("--root \"/nonexistent\" is not a directory"));
    assert!(refused(&["read", "/dev/null"]).contains("/dev/null"));
}

/// Runs a check that cannot write its result to `stdout`. Returns the exit status and stderr.
fn run_with_stdout(stdout: impl Into<std::process::Stdio>) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    let output = command.args(["-d", "0.1"]).stdout(stdout).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let message = "pg_timing: error: could not write to stdout: No space left on device\n";
    assert_eq!(run_with_stdout(full), (Some(3), message.into()));
}

/// As in `pg_timing | head -1`. The exit status is that of the verdict.
#[test]
fn closed_pipe_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (status, stderr) = run_with_stdout(writer);
    assert!(status.is_some_and(|status| status < 3) && stderr.is_empty(), "{status:?} {stderr}");
}
