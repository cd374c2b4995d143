//! The program under the name pg_test_timing, as PostgreSQL's own tests run it.

use super::{pg_test_timing, run};

/// Runs the program through the symlink. getopt_long's messages begin with the program's path, which is removed here.
fn run_as_pg_test_timing(arguments: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = run(pg_test_timing(&dir).args(arguments));
    (status, stdout, stderr.replace(&format!("{}/", dir.path().display()), ""))
}

const TRY: &str = "Try \"pg_test_timing --help\" for more information.\n";

/// The same with the format of PostgreSQL 15 to 18.
fn run_as_classic(arguments: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = run(pg_test_timing(&dir).args(arguments).env("PG_TEST_TIMING_FORMAT", "classic"));
    (status, stdout, stderr.replace(&format!("{}/", dir.path().display()), ""))
}

/// Scripts compare the text before the number, and read the number.
#[test]
fn version_is_postgresqls_and_then_ours() {
    for flag in ["--version", "-V"] {
        let version = |postgresql| {
            let text = format!("pg_test_timing (PostgreSQL) {postgresql} (pg_timing {})\n", env!("CARGO_PKG_VERSION"));
            (0, text, String::new())
        };
        assert_eq!(run_as_pg_test_timing(&[flag]), version("19.0"));
        assert_eq!(run_as_classic(&[flag]), version("18.0"));
    }
}

/// PostgreSQL's own tests limit the lines of a help text to 95 characters.
#[test]
fn help_names_the_options_and_the_formats() {
    for flag in ["--help", "-?"] {
        for ((status, stdout, stderr), usage) in [
            (run_as_pg_test_timing(&[flag]), "Usage: pg_test_timing [-c CUTOFF] [-d DURATION]\n"),
            (run_as_classic(&[flag]), "Usage: pg_test_timing [-d DURATION]\n"),
        ] {
            assert_eq!((status, stderr.as_str()), (0, ""));
            assert!(stdout.starts_with(usage) && stdout.contains("PG_TEST_TIMING_FORMAT=classic"), "{stdout}");
            assert!(stdout.lines().all(|line| line.len() <= 95), "{stdout}");
        }
    }
}

#[test]
fn an_unknown_format_in_the_environment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = run(pg_test_timing(&dir).env("PG_TEST_TIMING_FORMAT", "18").arg("-V"));
    assert_eq!((status, stdout.as_str()), (1, ""));
    assert_eq!(
        stderr,
        "pg_test_timing: invalid value for environment variable PG_TEST_TIMING_FORMAT: \"18\"\n\
         hint: set it to 19 or classic, or unset it\n"
    );
}

#[test]
fn the_classic_format_has_no_cutoff() {
    let (status, stdout, stderr) = run_as_classic(&["-c", "50"]);
    assert_eq!((status, stdout.as_str()), (1, ""));
    assert_eq!(stderr, format!("pg_test_timing: invalid option -- 'c'\n{TRY}"));
    let (status, stdout, stderr) = run_as_classic(&["-d", "1"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(
        stdout.starts_with("Testing timing overhead for 1 second.\nPer loop time including overhead: "),
        "{stdout}"
    );
    assert!(
        stdout.contains(" ns\nHistogram of timing durations:\n  < us   % of total      count\n     1 "),
        "{stdout}"
    );
}

/// PostgreSQL's program ignores errors of stdout.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let program = pg_test_timing(&dir).get_program().to_owned();
    let output = std::process::Command::new(program).args(["-d", "1"]).stdout(full).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_closed_pipe_ends_the_program_by_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    let dir = tempfile::tempdir().unwrap();
    let program = pg_test_timing(&dir).get_program().to_owned();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(program).arg("-V").stdout(writer).output().unwrap();
    assert_eq!((output.status.signal(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(libc::SIGPIPE), ""));
}

#[test]
fn bad_arguments_give_postgresqls_messages_and_status_1() {
    let invalid = |option| format!("pg_test_timing: invalid argument for option --{option}\n{TRY}");
    let range = "pg_test_timing: --duration must be in range 1..4294967295\n".to_string();
    let cutoff = "pg_test_timing: --cutoff must be in range 0..100\n".to_string();
    let surplus = format!("pg_test_timing: too many command-line arguments (first is \"x\")\n{TRY}");
    for (arguments, message) in [
        (&["-d", "0"][..], range.clone()),
        (&["--duration=0"], range.clone()),
        (&["-d", "x"], invalid("duration")),
        (&["-d", "-1"], invalid("duration")),
        (&["-d", "1.5"], invalid("duration")),
        (&["-d", "4294967296"], invalid("duration")),
        (&["-c", "101"], cutoff.clone()),
        (&["-c", "-1"], cutoff),
        (&["-c", "x"], invalid("cutoff")),
        (&["-c", "1e1000"], invalid("cutoff")),
        (&["-c", "1e-400"], invalid("cutoff")),
        (&["-c", ""], invalid("cutoff")),
        (&["-d", ""], invalid("duration")),
        (&["-d", "1", "-d", "0"], range.clone()),
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

#[test]
fn a_cutoff_that_is_no_number_lists_every_duration() {
    let (status, stdout, stderr) = run_as_pg_test_timing(&["-d", "1", "-c", "nan"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\nObserved timing durations up to NaN%:\n"), "{stdout}");
}
