//! The HTTP endpoint of `monitor` with real sockets, and with clients that are slow, hostile or many.

mod descriptors;
mod hostile;
mod many;

use pg_timing::monitor::http::{Endpoint, MAX_CONNECTIONS, REQUEST_LIMIT};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PAGE: &str = "# HELP a A.\n# TYPE a gauge\na 1\n";

/// A scrape must take less than this, whatever other clients do.
const SCRAPE: Duration = Duration::from_secs(1);

/// No test waits for longer.
const WAIT: Duration = Duration::from_secs(10);

fn start(page: &str) -> Endpoint {
    let endpoint = Endpoint::start("127.0.0.1:0").unwrap();
    endpoint.publish(page);
    endpoint
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    stream
}

/// Sends a request. Returns everything until the connection is closed.
fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A scrape as Prometheus does it must return the page in time.
fn assert_scrape_works(address: SocketAddr, page: &str) {
    let start = Instant::now();
    let answer = exchange(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    assert!(start.elapsed() < SCRAPE, "{:?}", start.elapsed());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(body == page, "{} instead of {} bytes", body.len(), page.len());
}

fn count(endpoint: &Endpoint, name: &str) -> u64 {
    endpoint.requests().get(name).copied().unwrap_or(0)
}

#[test]
fn it_answers_each_request_and_counts_it() {
    let page = "a 1\n".repeat(300_000);
    let endpoint = start(&page);
    let address = endpoint.address();
    for _ in 0..3 {
        assert_scrape_works(address, &page);
    }
    let head = exchange(address, b"HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.contains("Content-Length: 1200000\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(exchange(address, b"GET / HTTP/1.0\r\n\r\n").contains("<a href=\"/metrics\">"));
    for (request, code) in [("GET /favicon.ico", "404"), ("POST /metrics", "405"), ("GARBAGE", "400")] {
        let answer = exchange(address, format!("{request} HTTP/1.0\r\n\r\n").as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    }
    let counts: Vec<(&str, u64)> = endpoint.requests().into_iter().collect();
    assert_eq!(counts, [("200", 5), ("400", 1), ("404", 1), ("405", 1)]);
}

#[test]
fn a_new_page_is_served_at_once() {
    let endpoint = start("");
    assert!(exchange(endpoint.address(), b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 503 "));
    for text in ["a 1\n", "a 2\n"] {
        endpoint.publish(text);
        assert_scrape_works(endpoint.address(), text);
    }
}

#[test]
fn a_request_can_arrive_in_pieces() {
    let endpoint = start(PAGE);
    let mut stream = connect(endpoint.address());
    for piece in ["GET /met", "rics HTTP/1.1\r", "\nHost: a\r\n\r", "\n"] {
        stream.write_all(piece.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(PAGE), "{answer}");
}

#[test]
fn a_client_may_close_its_side_after_the_request() {
    let endpoint = start(PAGE);
    let mut stream = connect(endpoint.address());
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(PAGE), "{answer}");
}
