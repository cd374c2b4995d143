//! Passwords in connection strings, options and variables: no part of them is printed.

use super::fake_server::{error, message, next_statement, server, stay_silent, welcome};
use super::{pg_timing, refused, run};
use std::io::{Read, Write};

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

/// Refuses each session with the texts that real servers send: they quote the database, the user, or even the password.
fn refusing_server() -> String {
    server(|stream| {
        stream.write_all(&message(b'R', &3u32.to_be_bytes())).unwrap();
        let mut answer = [0; 1024];
        let length = stream.read(&mut answer).unwrap();
        let password = String::from_utf8_lossy(answer.get(5..length.max(6) - 1).unwrap_or_default()).into_owned();
        stream.write_all(&error(&format!("refused with \"{password}\""))).unwrap();
    })
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
        "postgresql://u@{}@127.0.0.1:1/db",
        "postgresql://u:{}",
        "postgresql://u:{}@/",
        "postgresql://u:{}/@127.0.0.1:1/db",
        "postgresql://u:a@b{}@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?p%61ssword={}%zz",
        "postgresql://127.0.0.1:1/db?pwd={}%zz",
        "postgresql://127.0.0.1:1/db?{}",
        "postgresql://127.0.0.1:1/db?{}=1",
        "postgresql://127.0.0.1:1/db?password={}&sslmode={}",
        "host=127.0.0.1 port=1 password={} {}",
        "host=127.0.0.1 port=1 password='{}",
        "password='a b' {}=1",
        "host=127.0.0.1;pwd={}",
        "host=u:{}@h",
        "host=postgresql://u:{}@h",
    ] {
        for password in [p, &encoded, &half] {
            let database = database.replace("{}", password);
            assert_hidden(&["explain", "-w", "-c", "SELECT 1", "-d", &database], &[]);
        }
    }
}

#[test]
fn passwords_that_a_server_repeats() {
    let port = refusing_server();
    let (p, encoded) = (PASSWORD, percent_encoded());
    let uri = format!("postgresql://u:{encoded}@127.0.0.1:{port}/db");
    assert!(assert_hidden(&["explain", "-c", "SELECT 1", &uri], &[]).contains("refused with"));
    let options = ["advise", "-h", "127.0.0.1", "-p", &port, "-U", "u"];
    assert!(assert_hidden(&options, &[("PGPASSWORD", p)]).contains("refused with"));
    // From the password file
    let file = tempfile::NamedTempFile::new().unwrap();
    writeln!(&file, "*:*:*:*:{p}").unwrap();
    let path = file.path().to_str().unwrap();
    assert!(assert_hidden(&options, &[("PGPASSFILE", path)]).contains("refused with"));
}

#[test]
fn passwords_in_other_places() {
    let uri = format!("postgresql://u:{PASSWORD}@h/db");
    let port = server(|stream| {
        stream.write_all(&error(&format!("role \"u:{PASSWORD}\" or database \"db&password={PASSWORD}\""))).unwrap();
    });
    let local = format!("127.0.0.1:{port}");
    for arguments in [
        &["-d", &format!("postgresql://u%3A{PASSWORD}@{local}/db")][..],
        &["-d", &format!("postgresql://{local}/db&password={}", percent_encoded())],
        &["-h", "127.0.0.1", "-p", &port, "-U", &format!("u:{PASSWORD}")],
        &["-h", "127.0.0.1", "-p", &port, "-d", &format!("dbname=u:{PASSWORD}@h")],
        &["-h", "127.0.0.1", "-p", &port, "-d", &format!("u:{PASSWORD}@h")],
        &["-h", &uri],
    ] {
        assert_hidden(&[&["explain", "-c", "SELECT 1"], arguments].concat(), &[]);
    }
    for variable in ["PGHOST", "PGSERVICE"] {
        assert_hidden(&["advise"], &[(variable, &uri)]);
    }
    assert_hidden(&["advise"], &[("PGDATABASE", &uri), ("PGHOST", "127.0.0.1"), ("PGPORT", &port)]);
    let file = tempfile::NamedTempFile::new().unwrap();
    writeln!(&file, "[s]\nhost={uri}").unwrap();
    assert_hidden(&["advise", "service=s"], &[("PGSERVICEFILE", file.path().to_str().unwrap())]);
}

/// Such passwords are in our own texts, too. Only the texts of libpq and of servers are changed.
#[test]
fn our_own_sentences_are_unchanged() {
    let port = server(|stream| stream.write_all(&error("refused with \"psql\"")).unwrap());
    let silent = server(stay_silent);
    let statement = server(|stream| {
        stream.write_all(&welcome()).unwrap();
        next_statement(stream);
        stream.write_all(&message(b'W', &[0, 0, 0])).unwrap();
        stay_silent(stream);
    });
    for (port, password, text) in [
        (&port, "psql", "check that psql connects with the same options"),
        (&silent, "server", "the server at 127.0.0.1:"),
        (&statement, "server", "the server started a COPY"),
    ] {
        let database = format!("host=127.0.0.1 port={port} user=u connect_timeout=2");
        let mut command = pg_timing();
        command.args(["explain", "-w", "-c", "SELECT 1", "-d", &database]).env("PGPASSWORD", password);
        let (_, _, stderr) = run(&mut command);
        assert!(stderr.contains(text), "{stderr}");
    }
}

/// libpq prints the name of a password file that others can read.
#[test]
fn a_password_file_with_a_name_that_controls_the_terminal() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pf\x1b[2J\nOK");
    std::fs::write(&path, "*:*:*:*:x\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = path.to_str().unwrap();
    let database = format!("host=127.0.0.1 port=1 passfile='{path}'");
    let service = dir.path().join("services");
    std::fs::write(&service, format!("[s]\nhost=127.0.0.1\nport=1\npassfile={}\n", path.replace('\n', ""))).unwrap();
    let service = service.to_str().unwrap();
    for (arguments, variables) in [
        (&["-h", "127.0.0.1", "-p", "1"][..], &[("PGPASSFILE", path)][..]),
        (&["-d", &database], &[]),
        (&["-h", "127.0.0.1"], &[("PGSERVICE", "s"), ("PGSERVICEFILE", service)]),
    ] {
        let stderr = assert_hidden(&[&["explain", "-c", "SELECT 1"], arguments].concat(), variables);
        assert!(!stderr.chars().any(|c| c != '\n' && c.is_control()), "{stderr:?}");
        assert!(stderr.contains("passfile"), "{stderr:?}");
    }
}
