//! Servers that try to take this program's memory and time. libpq stores what they send.

use super::fake_server::{
    column, error, message, next_statement, notice, parameter, ready, row, send_forever, server, stay_silent, welcome,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The program's peak memory may not exceed this: a result of 64 MB, and a copy of it.
const MAX_MB: u64 = 250;

/// Runs explain against a server. Returns stderr, which must be one error and one hint. The memory must stay small.
fn refused(session: impl Fn(&mut TcpStream) + Clone + Send + 'static, limit: &str) -> String {
    let port = server(session);
    let stderr = tempfile::NamedTempFile::new().unwrap();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("pg_timing"))
        .args(["explain", "-h", "127.0.0.1", "-p", &port, "-U", "u", "-w", "-d", "connect_timeout=2", "-c", "SELECT 1"])
        .args(["--limit", limit])
        .env("PGPASSWORD", "x")
        .stdout(std::process::Stdio::null())
        .stderr(stderr.reopen().unwrap())
        .spawn()
        .unwrap();
    let (start, mut peak) = (Instant::now(), 0);
    let status = loop {
        peak = peak.max(peak_mb(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = std::fs::read_to_string(stderr.path()).unwrap();
    assert!(text.len() < 20_000, "{} bytes on stderr", text.len());
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.lines().count() == 2 && text.lines().nth(1).unwrap().starts_with("hint: "), "{text}");
    assert!(peak < MAX_MB, "{peak} MB: {text}");
    text
}

/// Returns the most memory that a process has had, on Linux. The value of wait4 would include the parent's memory.
fn peak_mb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
}

/// A session that ends its start with these messages, without end.
fn after_start(stream: &mut TcpStream, part: &[u8]) {
    stream.write_all(&message(b'R', &0u32.to_be_bytes())).unwrap();
    send_forever(stream, part);
}

#[test]
fn notifications_forever_before_the_session_is_open() {
    let part = message(b'A', &[&[0, 0, 0, 7][..], b"channel\0", &[b'p'; 500], b"\0"].concat()).repeat(500);
    refused(move |stream| after_start(stream, &part), "1");
}

#[test]
fn password_requests_forever() {
    let part = message(b'R', &3u32.to_be_bytes()).repeat(10_000);
    let start = Instant::now();
    refused(move |stream| send_forever(stream, &part), "1");
    // The time limit before a server accepts the connection is 35 s.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn new_parameters_forever() {
    let stderr = refused(
        |stream| {
            stream.write_all(&welcome()).unwrap();
            next_statement(stream);
            let value = "v".repeat(29_000);
            for nth in 0.. {
                if stream.write_all(&parameter(&format!("n{nth}"), &value)).is_err() {
                    return;
                }
            }
        },
        "30",
    );
    assert!(stderr.contains("more than 80 MB"), "{stderr}");
}

#[test]
fn one_message_without_an_end() {
    for kind in *b"DENT" {
        let stderr = refused(
            move |stream| {
                stream.write_all(&welcome()).unwrap();
                next_statement(stream);
                stream.write_all(&[&column()[..], &[kind], &(1u32 << 30).to_be_bytes()].concat()).unwrap();
                send_forever(stream, &[b'x'; 1 << 16]);
            },
            "30",
        );
        assert!(stderr.contains("the server sent a row or another message of more than 80 MB"), "{stderr}");
        assert!(stderr.contains("leave large columns out of the result"), "{stderr}");
    }
}

#[test]
fn a_long_error_is_cut() {
    let stderr = refused(
        |stream| {
            stream.write_all(&welcome()).unwrap();
            next_statement(stream);
            stream.write_all(&[error(&"long ".repeat(200_000)), ready()].concat()).unwrap();
            stay_silent(stream);
        },
        "1",
    );
    assert!(stderr.contains("long long") && stderr.contains("[cut: 1 M bytes]"), "{stderr}");
    let stderr = refused(|stream| stream.write_all(&error(&"long ".repeat(1500))).unwrap(), "1");
    assert!(stderr.contains("long long") && stderr.contains("[cut: "), "{stderr}");
}

/// A row of almost 64 MB is within the limit of the rows, and many notices and rows in one statement take no memory.
#[test]
fn large_results_and_many_notices_are_no_error() {
    let stderr = refused(
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
        "30",
    );
    assert!(stderr.contains("the second statement"), "{stderr}");
}

/// libpq has closed the connection then.
#[test]
fn a_message_without_a_valid_length() {
    for length in [-1, 0, i32::MIN] {
        let start = Instant::now();
        let stderr = refused(
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
    refused(
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

/// The computation takes many minutes.
#[test]
fn a_password_method_that_keeps_the_client_busy() {
    let start = Instant::now();
    let stderr = refused(
        |stream| {
            stream.write_all(&message(b'R', &[&10u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat())).unwrap();
            let mut answer = [0; 1024];
            let length = stream.read(&mut answer).unwrap();
            let answer = String::from_utf8_lossy(&answer[..length]);
            let nonce = answer.split_once("r=").unwrap().1;
            let first = format!("r={nonce}x,s=QSXCR+Q6sek8bf92,i=2000000000");
            stream.write_all(&message(b'R', &[&11u32.to_be_bytes()[..], first.as_bytes()].concat())).unwrap();
            stay_silent(stream);
        },
        "1",
    );
    assert!(stderr.contains("the connection was not open within"), "{stderr}");
    assert!(stderr.contains("connect_timeout"), "{stderr}");
    // The time limit before a server accepts the connection is 35 s.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn a_server_without_a_version() {
    let stderr = refused(
        |stream| {
            stream.write_all(&[message(b'R', &0u32.to_be_bytes()), ready()].concat()).unwrap();
            stay_silent(stream);
        },
        "1",
    );
    assert!(stderr.contains("the server did not send its version"), "{stderr}");
}
