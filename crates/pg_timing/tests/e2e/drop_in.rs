//! The program by the name of pg_test_timing: what PostgreSQL's own tests ask of it.

use super::{pg_test_timing, ran};

/// PostgreSQL's messages name the program by its path where getopt_long wrote them.
fn asked(arguments: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = ran(pg_test_timing(&dir).args(arguments));
    (status, stdout, stderr.replace(&format!("{}/", dir.path().display()), ""))
}

const TRY: &str = "Try \"pg_test_timing --help\" for more information.\n";

#[test]
fn version_and_help() {
    for flag in ["--version", "-V"] {
        let (status, stdout, stderr) = asked(&[flag]);
        assert_eq!((status, stderr.as_str()), (0, ""));
        assert!(stdout.starts_with("pg_test_timing ("), "{stdout}");
    }
    for flag in ["--help", "-?"] {
        let (status, stdout, _) = asked(&[flag]);
        assert_eq!((status, stdout.as_str()), (0, "Usage: pg_test_timing [-c CUTOFF] [-d DURATION]\n"));
    }
}

#[test]
fn bad_arguments_get_postgresqls_words_and_status_1() {
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
        assert_eq!(asked(arguments), (1, String::new(), message), "{arguments:?}");
    }
}

#[test]
fn getopt_longs_own_messages() {
    for (arguments, words) in [
        (&["--frob"][..], "unrecognized option '--frob'"),
        (&["-z"], "invalid option -- 'z'"),
        (&["-d"], "option requires an argument -- 'd'"),
    ] {
        let (status, stdout, stderr) = asked(arguments);
        assert_eq!((status, stdout.as_str(), stderr), (1, "", format!("pg_test_timing: {words}\n{TRY}")));
    }
}

#[test]
fn abbreviated_options_and_output() {
    let (status, stdout, stderr) = asked(&["--dur", "1", "--cut=50"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("Testing timing overhead for 1 second.\n"), "{stdout}");
    assert!(stdout.contains("Observed timing durations up to 50.0000%:"), "{stdout}");
}
