//! Servers that are silent, send too much, or send what they must not send. Each is a small program on a loopback address.

use super::fake_server::{
    column, done, error, message, next_statement, notice, ready, row, send_forever, server, stay_silent, welcome,
    welcome_with,
};
use super::{pg_timing, run};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Runs explain against such a server. Returns stderr, which must be one error and one hint, and harmless.
fn refused_by_explain(session: impl Fn(&mut TcpStream) + Clone + Send + 'static) -> String {
    refused_with_limit(session, "1")
}

/// The same with a time limit for each statement, in s.
fn refused_with_limit(session: impl Fn(&mut TcpStream) + Clone + Send + 'static, limit: &str) -> String {
    let port = server(session);
    let mut command = pg_timing();
    command.args(["explain", "-h", "127.0.0.1", "-p", &port, "-U", "u", "-w", "-d", "connect_timeout=2"]);
    let start = Instant::now();
    let (status, stdout, stderr) = run(command.env("PGPASSWORD", "x").args(["--limit", limit, "-c", "SELECT 1"]));
    assert_eq!((status, stdout.as_str()), (3, ""), "{stderr}");
    assert!(start.elapsed() < Duration::from_secs(58), "it must end before the test kills it: {:?}", start.elapsed());
    assert!(stderr.starts_with("pg_timing: error: ") && stderr.lines().count() <= 2, "{stderr}");
    assert!(!stderr.chars().any(|c| c != '\n' && c.is_control()), "{stderr:?}");
    assert!(stderr.len() < 20_000, "{} bytes on stderr", stderr.len());
    stderr
}

#[test]
fn a_server_that_never_answers_the_connection() {
    let stderr = refused_by_explain(stay_silent);
    assert!(stderr.contains("the session did not begin within 2 s"), "{stderr}");
}

/// The error comes from the second server, so it was tried after the silent one.
#[test]
fn the_next_host_of_a_list_is_tried() {
    let silent = server(stay_silent);
    let second = server(|stream| stream.write_all(&error("the second server")).unwrap());
    let database = format!("host=127.0.0.1,127.0.0.1 port={silent},{second} connect_timeout=2");
    let (status, _, stderr) = run(pg_timing().args(["explain", "-U", "u", "-w", "-c", "SELECT 1", "-d", &database]));
    assert!(status == 3 && stderr.contains("the second server"), "{stderr}");
    let database = format!("host=127.0.0.1,127.0.0.1 port={second},{silent} connect_timeout=2");
    let (status, _, stderr) = run(pg_timing().args(["explain", "-U", "u", "-w", "-c", "SELECT 1", "-d", &database]));
    assert!(status == 3 && !stderr.is_empty(), "{stderr}");
}

#[test]
fn a_server_that_never_answers_a_statement() {
    let stderr = refused_by_explain(|stream| {
        stream.write_all(&welcome()).unwrap();
        stay_silent(stream);
    });
    assert!(stderr.contains("did not end the statement after a cancel request"), "{stderr}");
    assert!(stderr.contains("pg_terminate_backend(4096)"), "{stderr}");
}

#[test]
fn a_server_that_stops_to_answer() {
    let stderr = refused_by_explain(|stream| {
        stream.write_all(&welcome()).unwrap();
        let answer = [column(), message(b'C', b"SELECT 0\0"), ready()].concat();
        for _ in 0..2 {
            assert!(next_statement(stream));
            stream.write_all(&answer).unwrap();
        }
        stay_silent(stream);
    });
    assert!(stderr.contains("did not end the statement after a cancel request"), "{stderr}");
}

/// The statement is longer than the buffers of the network.
#[test]
fn a_server_that_stops_to_read() {
    let port = server(|stream| {
        stream.write_all(&welcome()).unwrap();
        // The session stays open until the test ends.
        std::thread::park();
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long.sql");
    std::fs::write(&file, format!("SELECT '{}'", "x".repeat(15 << 20))).unwrap();
    let mut command = pg_timing();
    command
        .args(["explain", "-h", "127.0.0.1", "-p", &port, "-U", "u", "-w", "-d", "x", "--limit", "1", "-f"])
        .arg(file);
    let (status, stdout, stderr) = run(&mut command);
    assert_eq!((status, stdout.as_str()), (3, ""), "{stderr}");
    assert!(stderr.contains("did not end the statement after a cancel request"), "{stderr}");
}

#[test]
fn a_server_that_sends_rows_forever() {
    let stderr = refused_by_explain(|stream| {
        stream.write_all(&welcome()).unwrap();
        // BEGIN has no rows. The next statement asks for a setting.
        next_statement(stream);
        stream.write_all(&done()).unwrap();
        next_statement(stream);
        stream.write_all(&column()).unwrap();
        send_forever(stream, &row(&[b'x'; 100_000]));
    });
    assert!(stderr.contains("sent more than 64 MB"), "{stderr}");
}

#[test]
fn a_server_that_sends_notices_and_notifications_forever() {
    let stderr = refused_by_explain(|stream| {
        stream.write_all(&welcome()).unwrap();
        next_statement(stream);
        let notification = message(b'A', b"\0\0\0\x01channel\0payload\0");
        send_forever(stream, &[notice("\x1b[2Jforged"), notification].concat());
    });
    assert!(stderr.contains("did not end the statement"), "{stderr}");
}

#[test]
fn a_server_that_completes_one_statement_forever() {
    let stderr = refused_by_explain(|stream| {
        stream.write_all(&welcome()).unwrap();
        next_statement(stream);
        stream.write_all(&[message(b'1', b""), message(b'2', b""), message(b'n', b"")].concat()).unwrap();
        send_forever(stream, &message(b'C', b"SELECT 0\0"));
    });
    assert!(stderr.contains("did not end the statement"), "{stderr}");
}

#[test]
fn a_server_that_starts_a_copy() {
    let stderr = refused_by_explain(|stream| {
        stream.write_all(&welcome()).unwrap();
        next_statement(stream);
        let start = [message(b'1', b""), message(b'2', b""), message(b'n', b""), message(b'W', &[0, 0, 0])].concat();
        stream.write_all(&start).unwrap();
        stay_silent(stream);
    });
    assert!(stderr.contains("unexpected result"), "{stderr}");
}

/// Errors and notices before and after the session is open. Notices are not printed.
#[test]
fn a_server_with_hostile_messages() {
    let stderr = refused_by_explain(|stream| {
        let text = "bad\x1b[2J\u{9b}31m\r\nOK  forged";
        stream.write_all(&error(text)).unwrap();
    });
    assert!(stderr.contains("bad\\u{1b}[2J") && !stderr.contains("WARNING"), "{stderr}");
    let stderr = refused_by_explain(|stream| {
        let text = "bad\x1b[2J\u{9b}31m\r\nOK  forged";
        stream.write_all(&[welcome_with(&notice(text)), notice(text)].concat()).unwrap();
        next_statement(stream);
        stream.write_all(&[notice(text), error(text), ready()].concat()).unwrap();
        while next_statement(stream) {
            stream.write_all(&done()).unwrap();
        }
    });
    assert!(stderr.contains("bad\\u{1b}[2J") && !stderr.contains("WARNING"), "{stderr}");
    assert!(!stderr.lines().any(|line| line.starts_with("OK")), "{stderr}");
}

#[test]
fn a_long_error_is_cut() {
    let stderr = refused_with_limit(
        |stream| {
            stream.write_all(&welcome()).unwrap();
            next_statement(stream);
            stream.write_all(&[error(&"long ".repeat(200_000)), ready()].concat()).unwrap();
            stay_silent(stream);
        },
        "1",
    );
    assert!(stderr.contains("long long") && stderr.contains("[cut: 1 M bytes]"), "{stderr}");
    let stderr = refused_with_limit(|stream| stream.write_all(&error(&"long ".repeat(1500))).unwrap(), "1");
    assert!(stderr.contains("long long") && stderr.contains("[cut: "), "{stderr}");
}

/// A row of almost 64 MB is within the limit of the rows, and many notices and rows in one statement take no memory.
#[test]
fn large_results_and_many_notices_are_no_error() {
    let stderr = refused_with_limit(
        |stream| {
            stream.write_all(&welcome()).unwrap();
            next_statement(stream);
            let notices = notice(&"n".repeat(10_000)).repeat(100);
            stream.write_all(&column()).unwrap();
            for _ in 0..100 {
                stream.write_all(&notices).unwrap();
            }
            stream.write_all(&row(&vec![b'x'; 63 << 20])).unwrap();
            stream.write_all(&[message(b'C', b"SELECT 1\0"), ready()].concat()).unwrap();
            next_statement(stream);
            stream.write_all(&[error("the second statement"), ready()].concat()).unwrap();
            stay_silent(stream);
        },
        "10",
    );
    assert!(stderr.contains("the second statement"), "{stderr}");
}

/// libpq has closed the connection then.
#[test]
fn a_message_without_a_valid_length() {
    for length in [-1, 0, i32::MIN] {
        let start = Instant::now();
        let stderr = refused_with_limit(
            move |stream| {
                stream.write_all(&welcome()).unwrap();
                next_statement(stream);
                stream.write_all(&[&column()[..], b"D", &i32::to_be_bytes(length)].concat()).unwrap();
                stay_silent(stream);
            },
            "30",
        );
        assert!(stderr.contains("the connection was lost: lost synchronization"), "{stderr}");
        // A silent server would take 34 s.
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}

/// The statements before the session is open have other time limits.
#[test]
fn the_limit_applies_to_the_first_statement() {
    let start = Instant::now();
    refused_with_limit(
        |stream| {
            stream.write_all(&welcome()).unwrap();
            stay_silent(stream);
        },
        "1",
    );
    // The limit of 1 s, the grace after it, and the wait for the cancel request take 5 s. The other limit is 10 s, so it
    // would take 14 s.
    assert!(start.elapsed() < Duration::from_secs(13), "{:?}", start.elapsed());
}

#[test]
fn a_server_without_a_version() {
    let stderr = refused_with_limit(
        |stream| {
            stream.write_all(&[message(b'R', &0u32.to_be_bytes()), ready()].concat()).unwrap();
            stay_silent(stream);
        },
        "1",
    );
    assert!(stderr.contains("the server did not send its version"), "{stderr}");
}

/// Ctrl-C, and the signal of timeout(1), end a wait for a silent server.
#[cfg(unix)]
#[test]
fn signals_end_the_wait() {
    let silent: [fn(&mut TcpStream); 2] = [stay_silent, |stream| {
        stream.write_all(&welcome()).unwrap();
        stay_silent(stream);
    }];
    for (session, signal) in silent.into_iter().zip([libc::SIGINT, libc::SIGTERM]) {
        let (connected, is_connected) = std::sync::mpsc::channel();
        let port = server(move |stream| {
            _ = connected.send(());
            session(stream);
        });
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("pg_timing"))
            .args(["explain", "-h", "127.0.0.1", "-p", &port, "-U", "u", "-w", "-c", "SELECT 1", "--limit", "3600"])
            .args(["-d", "connect_timeout=3600"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        is_connected.recv_timeout(Duration::from_secs(45)).unwrap();
        // SAFETY: a child of this process, which has not been waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, signal) };
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < Duration::from_secs(45), "signal {signal} has no effect");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(status.code(), Some(3), "signal {signal}");
    }
}
