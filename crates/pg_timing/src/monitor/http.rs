//! The HTTP endpoint that Prometheus scrapes: `GET /metrics` and `GET /`.
//!
//! One thread serves all connections, with one request per connection. A new connection is read at once, so a scrape gets
//! its answer before other connections can disturb it. If there are too many connections, the oldest one is closed: a client
//! that sends nothing cannot keep others out.

use crate::error::Error;
use crate::guardian::without_signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The host if the address has none: other hosts cannot read the metrics unless the user wants it.
const LOCAL: &str = "127.0.0.1";

/// Connections that wait to be accepted. The default of 128 fills up in one burst, and then clients wait for a second before
/// they try again. The kernel reduces larger values to its own limit.
const BACKLOG: i32 = 4096;
/// Connections that are accepted before the others are served again.
const BATCH: usize = 32;
/// Pause after an error that remains, for example if there are no file descriptors. Without it, the thread would use a CPU.
const PAUSE: Duration = Duration::from_millis(100);

/// Limit for the request line and the headers together. Prometheus sends about 300 bytes. Apache and nginx have the same
/// limit.
const MAX_HEADER: usize = 8 * 1024;
/// Limit for the number of headers. Prometheus sends five, and proxies add some.
const MAX_HEADERS: usize = 64;
/// Limit for all that a client sends. What follows the request is read and ignored: if a connection is closed while data is
/// unread, the kernel resets it, and the client may lose the answer.
const MAX_RECEIVED: usize = 64 * 1024;
/// Bytes that are read at a time. A request of Prometheus fits.
const CHUNK: usize = 1024;

const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const START_PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>pg_timing</title></head>\n\
    <body><h1>pg_timing monitor</h1><p><a href=\"/metrics\">Metrics</a> of this host's clocks, for Prometheus.</p></body></html>\n";

/// The name of connections beyond the limit in the counts of requests.
const REFUSED: &str = "refused";

/// Open connections. Prometheus needs one. The systemd unit allows 256 open files, and the samples need some of them.
pub const MAX_CONNECTIONS: usize = 64;
/// Time from the connection to the end of the answer. A scrape takes milliseconds, and Prometheus waits for 10 s.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// A running endpoint. Its thread ends with the process.
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

/// What both threads use.
#[derive(Default)]
struct Shared {
    /// empty before the first sample
    page: Arc<str>,
    /// requests by the status code of the answer, or `refused`
    requests: BTreeMap<&'static str, u64>,
}

impl Endpoint {
    /// Listens on `ADDRESS:PORT`, and starts to answer. `:PORT` or `PORT` alone means 127.0.0.1. Port 0 means any free port.
    pub fn start(address: &str) -> std::result::Result<Endpoint, Error> {
        let (listener, address) = listen(address)?;
        let shared = Arc::<Mutex<Shared>>::default();
        let server = Server { listener, shared: shared.clone(), connections: VecDeque::new() };
        let thread = || std::thread::Builder::new().name("http".into()).spawn(move || server.run());
        let failed =
            |error| Error::io("could not start the HTTP endpoint", &error, "check the limit for threads: ulimit -u");
        without_signals(thread).map_err(failed)?;
        Ok(Endpoint { address, shared })
    }

    /// Returns the address with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the page for Prometheus.
    pub fn publish(&self, page: &str) {
        self.shared.lock().unwrap().page = page.into();
    }

    /// Returns the number of requests by the status code of the answer. Connections beyond the limit are `refused`.
    pub fn requests(&self) -> BTreeMap<&'static str, u64> {
        self.shared.lock().unwrap().requests.clone()
    }
}

/// Returns a socket that listens, and its address. If a name has several addresses, it is the first one that this host can use.
fn listen(text: &str) -> std::result::Result<(TcpListener, SocketAddr), Error> {
    let full = match text.strip_prefix(':').unwrap_or(text) {
        port if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => format!("{LOCAL}:{port}"),
        _ => text.into(),
    };
    let bind = || {
        let listener = TcpListener::bind(&full)?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bind().map_err(|error: std::io::Error| {
        const HINT: &str = "give an address of this host (ip address) and a free port above 1023 (ss -ltnp), for example 127.0.0.1:9864";
        Error::io(format!("could not listen on {full}"), &error, HINT)
    })
}

struct Server {
    listener: TcpListener,
    shared: Arc<Mutex<Shared>>,
    /// the oldest first
    connections: VecDeque<Connection>,
}

impl Server {
    fn run(mut self) {
        loop {
            self.wait();
            let now = Instant::now();
            self.connections.retain_mut(|connection| connection.advance(&self.shared) && connection.deadline > now);
            self.accept();
        }
    }

    /// Waits until something can be done.
    fn wait(&self) {
        let first = self.connections.iter().map(|connection| connection.deadline).min();
        let timeout = first.and_then(|time| Timespec::try_from(time.saturating_duration_since(Instant::now())).ok());
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.connections.iter().map(|connection| PollFd::new(&connection.stream, connection.waits_for())));
        if poll(&mut fds, timeout.as_ref()).is_err() {
            std::thread::sleep(PAUSE);
        }
    }

    fn accept(&mut self) {
        for _ in 0..BATCH {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has closed the connection.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                // There are no file descriptors or no memory. The oldest connection gives its own to the next client.
                Err(_) => {
                    self.close_oldest();
                    return std::thread::sleep(PAUSE);
                }
            };
            let deadline = Instant::now() + REQUEST_LIMIT;
            let (received, answer) = (Vec::new(), Vec::new());
            let mut connection = Connection { stream, deadline, received, answer, written: 0 };
            // A scrape that has waited in the queue has its request ready.
            if connection.stream.set_nonblocking(true).is_ok() && connection.advance(&self.shared) {
                self.connections.push_back(connection);
            }
            if self.connections.len() > MAX_CONNECTIONS {
                self.close_oldest();
            }
        }
    }

    fn close_oldest(&mut self) {
        if self.connections.pop_front().is_some_and(|connection| connection.answer.is_empty()) {
            *self.shared.lock().unwrap().requests.entry(REFUSED).or_default() += 1;
        }
    }
}

/// A connection: it receives a request, sends the answer, and waits until the client has read it. No call blocks.
struct Connection {
    stream: TcpStream,
    /// it is closed at this time
    deadline: Instant,
    received: Vec<u8>,
    /// empty until the request is complete
    answer: Vec<u8>,
    written: usize,
}

impl Connection {
    fn waits_for(&self) -> PollFlags {
        if self.written < self.answer.len() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// Does what is possible now. Returns whether the connection stays open.
    fn advance(&mut self, shared: &Mutex<Shared>) -> bool {
        loop {
            let done = if self.waits_for() == PollFlags::OUT { self.write() } else { self.read(shared) };
            if let Err(error) = done {
                return error.kind() == ErrorKind::WouldBlock;
            }
        }
    }

    /// Reads until the request has an answer, and then until the client closes the connection.
    fn read(&mut self, shared: &Mutex<Shared>) -> Result<()> {
        let mut chunk = [0; CHUNK];
        let count = self.stream.read(&mut chunk)?;
        if count == 0 || self.received.len() > MAX_RECEIVED {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        self.received.extend_from_slice(&chunk[..count]);
        let page = shared.lock().unwrap().page.clone();
        if self.answer.is_empty()
            && let Some((code, answer)) = answer(&self.received, &page)
        {
            *shared.lock().unwrap().requests.entry(code).or_default() += 1;
            self.answer = answer;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.written += self.stream.write(&self.answer[self.written..])?;
        if self.written < self.answer.len() { Ok(()) } else { self.stream.shutdown(Shutdown::Write) }
    }
}

/// Returns the answer to the bytes that were received so far, with the three digits of its status. `None` if the request is not
/// complete. The connection is closed after the answer.
fn answer(received: &[u8], page: &str) -> Option<(&'static str, Vec<u8>)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(received);
    if parsed == Ok(httparse::Status::Partial) && received.len() < MAX_HEADER {
        return None;
    }
    let method = request.method.unwrap_or_default();
    let path = request.path.unwrap_or_default().split('?').next();
    let (status, content_type, body) = match (method, path) {
        _ if !parsed.is_ok_and(|status| status.is_complete()) => ("400 Bad Request", TEXT, "Bad request.\n"),
        ("GET" | "HEAD", Some("/")) => ("200 OK", HTML, START_PAGE),
        ("GET" | "HEAD", Some("/metrics")) if page.is_empty() => {
            ("503 Service Unavailable", TEXT, "There is no sample yet.\n")
        }
        ("GET" | "HEAD", Some("/metrics")) => ("200 OK", METRICS, page),
        ("GET" | "HEAD", _) => ("404 Not Found", TEXT, "The metrics are at /metrics.\n"),
        _ => ("405 Method Not Allowed", TEXT, "Only GET and HEAD are possible.\n"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { "" } else { body };
    Some((&status[..3], (head + body).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_scrape_gets_the_page() {
        let answer = text("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nmetrics\n"), "{answer}");
        for line in ["Content-Type: text/plain; version=0.0.4; charset=utf-8", "Content-Length: 8", "Connection: close"]
        {
            assert!(answer.contains(&format!("\r\n{line}\r\n")), "{answer}");
        }
        assert!(START_PAGE.contains("href=\"/metrics\""));
    }

    #[test]
    fn each_request_has_its_status() {
        let headers = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(count));
        for (request, expected) in [
            ("GET /metrics HTTP/1.0\r\n\r\n", "200"),
            ("GET /metrics?a=b HTTP/1.1\r\nhost: a\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", "200"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n", "200"),
            ("GET //metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET /../metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "405"),
            ("get /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
            ("GET /metrics\r\n\r\n", "400"),
            ("\x16\x03\x01\x02\0\x01\0", "400"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"),
            (&headers(MAX_HEADERS), "200"),
            (&headers(MAX_HEADERS + 1), "400"),
            (&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(8000)), "incomplete"),
            (&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEADER)), "400"),
            ("", "incomplete"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n", "incomplete"),
        ] {
            let code = answer(request.as_bytes(), "metrics\n").map_or("incomplete", |(code, _)| code);
            assert_eq!(code, expected, "{request:?}");
        }
        assert_eq!(answer(b"GET /metrics HTTP/1.0\r\n\r\n", "").unwrap().0, "503", "there is no sample");
    }

    fn text(request: &str) -> String {
        String::from_utf8(answer(request.as_bytes(), "metrics\n").unwrap().1).unwrap()
    }

    #[test]
    fn head_has_the_headers_of_get_and_no_body() {
        for path in ["/metrics", "/", "/other"] {
            let of = |method: &str| text(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let (get, head) = (of("GET"), of("HEAD"));
            assert!(get.starts_with(&head) && head.ends_with("\r\n\r\n") && get.len() > head.len(), "{head}");
        }
    }

    proptest! {
        /// No bytes lead to a panic, and MAX_HEADER bytes always lead to an answer.
        #[test]
        fn any_bytes_have_an_answer(
            line in "(GET|HEAD|POST|[ -~]{0,9})? ?(/|/metrics|[ -~]{0,20})? ?(HTTP/1\\.[01])?\r?\n?",
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = line.into_bytes();
            bytes.extend(rest);
            if let Some((_, answer)) = answer(&bytes, "page") {
                prop_assert!(answer.starts_with(b"HTTP/1.1 "));
            }
            bytes.resize(MAX_HEADER, b'x');
            prop_assert!(answer(&bytes, "page").is_some());
        }
    }

    #[test]
    fn an_address_has_a_port() {
        for text in ["127.0.0.1:0", ":0", "0", "[::1]:0", "localhost:0"] {
            let (_, address) = listen(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(address.ip().is_loopback(), "{text}: {address}");
        }
        for text in ["", "localhost", "127.0.0.1", "localhost:", ":65536", ":+80", "http://localhost:80/metrics", "::1"]
        {
            let error = listen(text).unwrap_err();
            assert!(error.what.starts_with("could not listen on ") && error.what.contains(text), "{error}");
            assert!(error.hint.contains("127.0.0.1"), "{}", error.hint);
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_one_clear_error() {
        let (_listener, address) = listen("127.0.0.1:0").unwrap();
        let error = listen(&address.to_string()).unwrap_err();
        assert_eq!(error.what, format!("could not listen on {address}: Address already in use"));
        // A documentation address: RFC 5737.
        let error = listen("192.0.2.1:9864").unwrap_err();
        assert!(error.what.starts_with("could not listen on 192.0.2.1:9864: "), "{error}");
        let error = listen("no-such-host.invalid:9864").unwrap_err();
        assert!(error.what.starts_with("could not listen on no-such-host.invalid:9864: "), "{error}");
        assert!(!error.what.contains('\n'));
    }
}
