//! Passwords in connection strings, options and variables: no part of them is printed.

use super::{pg_timing, refused, run};

const PASSWORD: &str = "Qz7xKw9vJt";

/// Runs the program. No part of the password may be in its output.
fn assert_hidden(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = pg_timing();
    command.args(arguments).env("HOME", "/nonexistent");
    for (name, value) in variables {
        command.env(name, value);
    }
    let (status, stdout, stderr) = run(&mut command);
    assert_eq!((status, stdout.as_str()), (3, ""), "{arguments:?} {variables:?}: {stderr}");
    for start in 0..=PASSWORD.len() - 4 {
        let part = &PASSWORD[start..start + 4];
        assert!(!stderr.contains(part), "{arguments:?} {variables:?}: {stderr}");
    }
    assert!(stderr.starts_with("pg_timing: error: ") && stderr.contains("\nhint: "), "{stderr}");
    stderr
}

fn percent_encoded() -> String {
    PASSWORD.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn passwords_in_usage_errors() {
    let uri = format!("postgresql://u:{PASSWORD}@h/db");
    let pairs = format!("host=h password='a b' {PASSWORD}=1");
    for arguments in [
        &[uri.as_str()][..],
        &[&pairs],
        &["explain", "-c", "SELECT 1", "db", &uri],
        &["explain", "-c", "SELECT 1", "db", &pairs],
        &["explain", "--format", &uri],
        &["advise", "--window", &uri],
        &["explain", &format!("--format={uri}")],
        &["explain", &format!("--{uri}")],
        &["check", "--format", &uri],
    ] {
        assert_hidden(arguments, &[]);
    }
    let stderr = assert_hidden(&[&uri], &[]);
    assert!(stderr.contains("pg_timing explain"), "{stderr}");
    let stderr = refused(&["explain", &format!("--password={PASSWORD}"), "-c", "SELECT 1"]);
    assert!(stderr.contains("--password takes no value") && !stderr.contains(PASSWORD), "{stderr}");
}

#[test]
fn passwords_in_connection_strings() {
    let (p, encoded) = (PASSWORD, percent_encoded());
    let half = format!("{}{}", &PASSWORD[..5], &encoded[15..]);
    for database in [
        "postgresql://u:{}@[::1/db",
        "postgresql://u:{}/x@127.0.0.1:1/db",
        "postgresql://u:{}@127.0.0.1:x/db",
        "postgresql://127.0.0.1:1/db?p%61ssword={}%zz",
        "postgresql://127.0.0.1:1/db?pwd={}%zz",
        "postgresql://127.0.0.1:1/db?{}",
        "postgresql://127.0.0.1:1/db?{}=1",
        "postgresql://127.0.0.1:1/db?password={}&sslmode={}",
        "host=127.0.0.1 port=1 password={} {}",
        "host=127.0.0.1 port=1 password='{}",
        "password='a b' {}=1",
    ] {
        for password in [p, &encoded, &half] {
            let database = database.replace("{}", password);
            assert_hidden(&["explain", "-w", "-c", "SELECT 1", "-d", &database], &[]);
        }
    }
}
