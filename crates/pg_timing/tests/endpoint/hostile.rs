//! Clients that break the rules.

use super::*;
use std::os::fd::AsRawFd;

/// Closes a connection with a reset.
fn reset(stream: TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the option is a whole `linger`.
    let set = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length)
    };
    assert_eq!(set, 0);
}

#[test]
fn garbage_gets_an_error_and_does_no_harm() {
    let endpoint = start(PAGE);
    // A fixed series of bytes: a linear congruential generator.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    for size in [1, 10, 1000, 100_000] {
        let mut stream = connect(endpoint.address());
        let bytes: Vec<u8> = (0..size).map(|_| next()).collect();
        // The endpoint may close the connection before everything is sent.
        _ = stream.write_all(&bytes);
        _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
        assert_scrape_works(endpoint.address(), PAGE);
    }
    // The first bytes of TLS.
    assert!(exchange(endpoint.address(), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").starts_with("HTTP/1.1 400 "));
}

/// The client can read the answer although it sends more than the endpoint reads.
#[test]
fn huge_headers_and_bodies_get_an_answer() {
    let endpoint = start(PAGE);
    let header = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(40_000));
    assert!(exchange(endpoint.address(), header.as_bytes()).starts_with("HTTP/1.1 400 "));
    let body = format!("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n{}", "x".repeat(40_000));
    assert!(exchange(endpoint.address(), body.as_bytes()).starts_with("HTTP/1.1 405 "));
    // A stream without an end is cut.
    let mut stream = connect(endpoint.address());
    stream.set_write_timeout(Some(WAIT)).unwrap();
    let start = Instant::now();
    while stream.write_all(&[b'x'; 65536]).is_ok() {
        assert!(start.elapsed() < WAIT);
    }
    assert_scrape_works(endpoint.address(), PAGE);
}

#[test]
fn resets_do_no_harm() {
    let page = "a 1\n".repeat(300_000);
    let endpoint = start(&page);
    for request in ["", "GET /met", "GET /metrics HTTP/1.0\r\n\r\n"] {
        for read in [0, 100] {
            let mut stream = connect(endpoint.address());
            stream.write_all(request.as_bytes()).unwrap();
            if request.ends_with("\r\n\r\n") {
                _ = stream.read(&mut vec![0; read]);
            }
            reset(stream);
            assert_scrape_works(endpoint.address(), &page);
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    // More than the sockets' buffers hold.
    let page = "a 1\n".repeat(5_000_000);
    let endpoint = start(&page);
    let mut slow = connect(endpoint.address());
    slow.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    std::thread::sleep(REQUEST_LIMIT + SCRAPE);
    let mut received = Vec::new();
    _ = slow.read_to_end(&mut received);
    assert!(received.len() < page.len(), "{}", received.len());
    assert_eq!(count(&endpoint, "200"), 1);
}

#[test]
fn a_request_that_never_ends_is_closed_at_the_time_limit() {
    let endpoint = start(PAGE);
    let start = Instant::now();
    assert_eq!(exchange(endpoint.address(), b"GET /metrics HTTP/1.1\r\nHost: "), "");
    assert!(start.elapsed() >= REQUEST_LIMIT && start.elapsed() < REQUEST_LIMIT + SCRAPE, "{:?}", start.elapsed());
    assert_eq!(exchange(endpoint.address(), b""), "", "a client without a request gets no answer");
    assert!(endpoint.requests().is_empty());
}
