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
fn refused_by_explain(session: fn(&mut TcpStream)) -> String {
    let port = server(session);
    let mut command = pg_timing();
    command.args([
        "explain",
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-U",
        "u",
        "-w",
        "-d",
        "connect_timeout=2",
        "--limit",
        "1",
    ]);
    let start = Instant::now();
    let (status, stdout, stderr) = run(command.env("PGPASSWORD", "x").args(["-c", "SELECT 1"]));
    assert_eq!((status, stdout.as_str()), (3, ""), "{stderr}");
    assert!(start.elapsed() < Duration::from_secs(58), "it must end before the test kills it: {:?}", start.elapsed());
    assert!(stderr.starts_with("pg_timing: error: ") && stderr.lines().count() <= 2, "{stderr}");
    assert!(!stderr.chars().any(|c| c != '\n' && c.is_control()), "{stderr:?}");
    stderr
}

#[test]
fn a_server_that_never_answers_the_connection() {
    let stderr = refused_by_explain(stay_silent);
    assert!(stderr.contains("accepted the connection, but did not answer within 2 s"), "{stderr}");
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

/// libpq does not return while messages arrive.
#[test]
fn a_server_that_requests_passwords_forever() {
    let stderr = refused_by_explain(|stream| send_forever(stream, &message(b'R', &3u32.to_be_bytes())));
    assert!(!stderr.is_empty(), "{stderr}");
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
    assert!(stderr.contains("several results for one statement"), "{stderr}");
}

#[test]
fn a_server_that_starts_a_copy() {
    for kind in *b"GHW" {
        let session: fn(&mut TcpStream) = match kind {
            b'G' => |stream| copy(stream, b'G'),
            b'H' => |stream| copy(stream, b'H'),
            _ => |stream| copy(stream, b'W'),
        };
        let stderr = refused_by_explain(session);
        assert!(stderr.contains("the server started a COPY"), "{stderr}");
    }
}

fn copy(stream: &mut TcpStream, kind: u8) {
    stream.write_all(&welcome()).unwrap();
    next_statement(stream);
    let start = [message(b'1', b""), message(b'2', b""), message(b'n', b""), message(kind, &[0, 0, 0])].concat();
    stream.write_all(&start).unwrap();
    stay_silent(stream);
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
