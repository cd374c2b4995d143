//! The program under the name pg_test_timing, as PostgreSQL's own tests run it.

use super::{pg_test_timing, run};

/// Runs the program through the symlink. getopt_long's messages begin with the program's path, which is removed here.
fn run_as_pg_test_timing(arguments: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = run(pg_test_timing(&dir).args(arguments));
    (status, stdout, stderr.replace(&format!("{}/", dir.path().display()), ""))
}

const TRY: &str = "Try \"pg_test_timing --help\" for more information.\n";

#[test]
fn version_and_help() {
    for flag in ["--version", "-V"] {
        let (status, stdout, stderr) = run_as_pg_test_timing(&[flag]);
        assert_eq!((status, stderr.as_str()), (0, ""));
        assert!(stdout.starts_with("pg_test_timing ("), "{stdout}");
        assert!(stdout.ends_with(&format!(") {}\n", env!("CARGO_PKG_VERSION"))), "{stdout}");
    }
    for flag in ["--help", "-?"] {
        let usage = "Usage: pg_test_timing [-c CUTOFF] [-d DURATION]\n";
        assert_eq!(run_as_pg_test_timing(&[flag]), (0, usage.into(), String::new()));
    }
}

#[test]
fn bad_arguments_give_postgresqls_messages_and_status_1() {
    let invalid = |option| format!("pg_test_timing: invalid argument for option --{option}\n{TRY}");
    let range = "pg_test_timing: --duration must be in range 1..4294967295\n".to_string();
    let cutoff = "pg_test_timing: --cutoff must be in range 0..100\n".to_string();
    let surplus = format!("pg_test_timing: too many command-line arguments (first is \"x\")\n{TRY}");
    for (arguments, message) in [
        (&["-d", "0"][..], range.clone()),
        (&["--duration=0"], range),
        (&["-d", "x"], invalid("duration")),
        (&["-d", "-1"], invalid("duration")),
        (&["-d", "1.5"], invalid("duration")),
        (&["-d", "4294967296"], invalid("duration")),
        (&["-c", "101"], cutoff.clone()),
        (&["-c", "-1"], cutoff),
        (&["-c", "x"], invalid("cutoff")),
        (&["-c", "1e1000"], invalid("cutoff")),
        (&["x"], surplus.clone()),
        (&["x", "-d", "1"], surplus),
    ] {
        assert_eq!(run_as_pg_test_timing(arguments), (1, String::new(), message), "{arguments:?}");
    }
}

#[test]
fn unknown_options_give_getopt_longs_messages() {
    for (arguments, message) in [
        (&["--frob"][..], "unrecognized option '--frob'"),
        (&["-z"], "invalid option -- 'z'"),
        (&["-d"], "option requires an argument -- 'd'"),
    ] {
        let stderr = format!("pg_test_timing: {message}\n{TRY}");
        assert_eq!(run_as_pg_test_timing(arguments), (1, String::new(), stderr));
    }
}
