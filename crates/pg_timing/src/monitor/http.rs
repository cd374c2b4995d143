//! The HTTP endpoint that Prometheus scrapes: `GET /metrics` and `GET /`.
//!
//! One thread serves all connections, with one request per connection. A new connection is read at once, so a scrape gets
//! its answer before other connections can disturb it. If there are too many connections, the oldest one is closed: a client
//! that sends nothing cannot keep others out.

use super::lines::without_signals;
use crate::error::Error;
use crate::human::reason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// The limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections. Prometheus needs one. The systemd unit allows 256 open files, and the samples need some of them.
    pub connections: usize,
    /// Time from the connection to the end of the answer. A scrape takes milliseconds, and Prometheus waits for 10 s.
    pub request: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 64, request: Duration::from_secs(5) }
    }
}

/// A running endpoint. Its thread ends with the process.
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What both threads use.
#[derive(Default)]
struct Shared {
    /// empty before the first sample
    page: Mutex<Arc<str>>,
    /// requests by the status code of the answer, or `refused`
    requests: Mutex<BTreeMap<&'static str, u64>>,
}

impl Endpoint {
    /// Listens on `ADDRESS:PORT`, and starts to answer. `:PORT` or `PORT` alone means 127.0.0.1. Port 0 means any free port.
    pub fn start(address: &str, limits: Limits) -> std::result::Result<Endpoint, Error> {
        let (listener, address) = listen(address)?;
        let shared = Arc::<Shared>::default();
        let server = Server { listener, shared: shared.clone(), limits, connections: VecDeque::new() };
        let thread = || std::thread::Builder::new().name("http".into()).spawn(move || server.run());
        without_signals(thread).map_err(|error| {
            let what = format!("could not start the HTTP endpoint: {}", reason(&error));
            Error::new(what, "check the limit for threads: ulimit -u")
        })?;
        Ok(Endpoint { address, shared })
    }

    /// Returns the address with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the page for Prometheus.
    pub fn publish(&self, page: &str) {
        *lock(&self.shared.page) = page.into();
    }

    /// Returns the number of requests by the status code of the answer. Connections beyond the limit are `refused`.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        lock(&self.shared.requests).iter().map(|(name, count)| (name.to_string(), *count)).collect()
    }
}

impl Shared {
    fn count(&self, name: &'static str) {
        *lock(&self.requests).entry(name).or_default() += 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a socket that listens, and its address. If a name has several addresses, it is the first one that this host can use.
fn listen(text: &str) -> std::result::Result<(TcpListener, SocketAddr), Error> {
    let full = match text.strip_prefix(':').unwrap_or(text) {
        port if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => format!("{LOCAL}:{port}"),
        _ => text.into(),
    };
    let bind = || {
        let addresses: Vec<SocketAddr> = full.to_socket_addrs()?.collect();
        let listener = TcpListener::bind(&addresses[..])?;
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bind().map_err(|error: std::io::Error| {
        let hint = match error.kind() {
            ErrorKind::InvalidInput => "type ADDRESS:PORT, for example --listen 127.0.0.1:9864".into(),
            ErrorKind::AddrInUse => {
                let port = full.rsplit(':').next().unwrap_or_default();
                format!("choose another port, or find the program that uses it: ss -ltnp 'sport = :{port}'")
            }
            ErrorKind::PermissionDenied => {
                "use a port above 1023: lower ports need the capability CAP_NET_BIND_SERVICE".into()
            }
            _ => "use an IP address of this host, for example 127.0.0.1 or 0.0.0.0; to list them: ip address".into(),
        };
        Error::new(format!("could not listen on {full}: {}", reason(&error)), hint)
    })
}

struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    limits: Limits,
    /// the oldest first
    connections: VecDeque<Connection>,
}

impl Server {
    fn run(mut self) {
        loop {
            let ready = self.wait();
            self.serve(&ready);
            self.accept();
        }
    }

    /// Waits until something can be done. Returns for each connection whether it is ready.
    fn wait(&self) -> Vec<bool> {
        let timeout = self.connections.iter().map(|connection| connection.deadline).min().map(|time| {
            let left = time.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ }
        });
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.connections.iter().map(|connection| PollFd::new(&connection.stream, connection.waits_for())));
        if poll(&mut fds, timeout.as_ref()).is_err() {
            std::thread::sleep(PAUSE);
        }
        fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        for ready in ready {
            let Some(mut connection) = self.connections.pop_front() else { return };
            if *ready && !connection.advance(&self.shared) {
                continue;
            }
            match connection.deadline <= now {
                true => connection.expire(&self.shared),
                false => self.connections.push_back(connection),
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..BATCH {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has closed the connection.
                Err(error) if [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset].contains(&error.kind()) => {
                    continue;
                }
                // There are no file descriptors or no memory. The oldest connection gives its own to the next client.
                Err(_) => {
                    self.close_oldest();
                    return std::thread::sleep(PAUSE);
                }
            };
            let deadline = Instant::now() + self.limits.request;
            let mut connection = Connection { stream, deadline, received: Vec::new(), answer: None, written: 0 };
            // A scrape that has waited in the queue has its request ready.
            if connection.stream.set_nonblocking(true).is_ok() && connection.advance(&self.shared) {
                self.connections.push_back(connection);
            }
            if self.connections.len() > self.limits.connections {
                self.close_oldest();
            }
        }
    }

    fn close_oldest(&mut self) {
        if self.connections.pop_front().is_some_and(|connection| connection.answer.is_none()) {
            self.shared.count(REFUSED);
        }
    }
}

/// A connection: it receives a request, sends the answer, and waits until the client has read it. No call blocks.
struct Connection {
    stream: TcpStream,
    /// it is closed at this time
    deadline: Instant,
    received: Vec<u8>,
    /// the answer's bytes, after the request
    answer: Option<Vec<u8>>,
    written: usize,
}

impl Connection {
    fn unwritten(&self) -> &[u8] {
        self.answer.as_deref().map_or(&[], |answer| &answer[self.written..])
    }

    fn waits_for(&self) -> PollFlags {
        if self.unwritten().is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Does what is possible now. Returns whether the connection stays open.
    fn advance(&mut self, shared: &Shared) -> bool {
        loop {
            let done = if self.unwritten().is_empty() { self.read(shared) } else { self.write() };
            match done {
                Ok(()) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// Reads until the request has an answer, and then until the client closes the connection.
    fn read(&mut self, shared: &Shared) -> Result<()> {
        let mut chunk = [0; CHUNK];
        let count = self.stream.read(&mut chunk)?;
        if count == 0 || self.received.len() > MAX_RECEIVED {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        self.received.extend_from_slice(&chunk[..count]);
        if self.answer.is_none()
            && let Some(answer) = answer(&self.received, || lock(&shared.page).clone())
        {
            shared.count(answer.code);
            self.answer = Some(answer.bytes());
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.written += self.stream.write(&self.answer.as_deref().unwrap_or_default()[self.written..])?;
        if self.unwritten().is_empty() { self.stream.shutdown(Shutdown::Write) } else { Ok(()) }
    }

    /// Closes the connection because its time is over.
    fn expire(mut self, shared: &Shared) {
        // A client that has sent nothing expects no answer. Browsers open such connections in advance.
        if self.answer.is_none() && !self.received.is_empty() {
            let answer = Answer::error("408 Request Timeout", true);
            shared.count(answer.code);
            // The socket's buffer is empty, so one call writes everything, unless the client is gone.
            _ = self.stream.write(&answer.bytes());
        }
    }
}

const METHOD_NOT_ALLOWED: &str = "405 Method Not Allowed";
const HEADERS_TOO_LARGE: &str = "431 Request Header Fields Too Large";
const UNAVAILABLE: &str = "503 Service Unavailable";

/// An answer. The connection is closed after it.
#[derive(Debug)]
struct Answer {
    /// the three digits of the status
    code: &'static str,
    head: String,
    /// empty for HEAD
    body: Arc<str>,
}

impl Answer {
    /// `status` is a code with its name.
    fn new(status: &'static str, content_type: &str, body: Arc<str>, with_body: bool) -> Answer {
        let allow = if status == METHOD_NOT_ALLOWED { "Allow: GET, HEAD\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        );
        Answer { code: &status[..3], head, body: if with_body { body } else { "".into() } }
    }

    fn error(status: &'static str, with_body: bool) -> Answer {
        let text = if status == UNAVAILABLE { "There is no sample yet." } else { status };
        Answer::new(status, TEXT, format!("{text}\n").into(), with_body)
    }

    fn bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), self.body.as_bytes()].concat()
    }
}

/// Returns the answer to the bytes that were received so far. `None` if the request is not complete.
fn answer(received: &[u8], page: impl Fn() -> Arc<str>) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let status = match request.parse(received) {
        Ok(httparse::Status::Complete(_)) => return Some(answer_to(&request, page)),
        Ok(httparse::Status::Partial) if received.len() < MAX_HEADER => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => HEADERS_TOO_LARGE,
        Err(httparse::Error::Version) => "505 HTTP Version Not Supported",
        Err(_) => "400 Bad Request",
    };
    Some(Answer::error(status, true))
}

fn answer_to(request: &httparse::Request, page: impl Fn() -> Arc<str>) -> Answer {
    let with_body = request.method != Some("HEAD");
    let values = |name: &'static str| request.headers.iter().filter(move |h| h.name.eq_ignore_ascii_case(name));
    let has_body =
        values("Content-Length").any(|length| length.value != b"0") || values("Transfer-Encoding").next().is_some();
    let status = match (request.method, path(request.path.unwrap_or_default())) {
        // HTTP/1.1 requires the header Host once, so that a misunderstood request is noticed.
        _ if request.version == Some(1) && values("Host").count() != 1 => "400 Bad Request",
        (Some("GET" | "HEAD"), _) if has_body => "413 Content Too Large",
        (Some("GET" | "HEAD"), "/") => return Answer::new("200 OK", HTML, START_PAGE.into(), with_body),
        (Some("GET" | "HEAD"), "/metrics") => match page() {
            page if page.is_empty() => UNAVAILABLE,
            page => return Answer::new("200 OK", METRICS, page, with_body),
        },
        (Some("GET" | "HEAD"), _) => "404 Not Found",
        _ => METHOD_NOT_ALLOWED,
    };
    Answer::error(status, with_body)
}

/// Returns the path of a request's target, which can also be a whole URL.
fn path(target: &str) -> &str {
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => target,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer_to(request: &str) -> Option<Answer> {
        answer(request.as_bytes(), || "metrics\n".into())
    }

    fn code(request: &str) -> &'static str {
        answer_to(request).map_or("incomplete", |answer| answer.code)
    }

    #[test]
    fn a_scrape_gets_the_page() {
        let answer = answer_to("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n").unwrap();
        assert_eq!((answer.code, &*answer.body), ("200", "metrics\n"));
        assert!(answer.head.starts_with("HTTP/1.1 200 OK\r\n") && answer.head.ends_with("\r\n\r\n"));
        for line in ["Content-Type: text/plain; version=0.0.4; charset=utf-8", "Content-Length: 8", "Connection: close"]
        {
            assert!(answer.head.contains(&format!("\r\n{line}\r\n")), "{}", answer.head);
        }
    }

    #[test]
    fn each_request_has_its_status() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.0\r\n\r\n", "200"),
            ("GET /metrics?a=b HTTP/1.1\r\nhost: a\r\n\r\n", "200"),
            ("GET http://a:9864/metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
            ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "200"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n", "200"),
            ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET //metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET /../metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("GET ftp://a/metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "405"),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
            ("get /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
            ("GET /metrics\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", "400"),
            ("\x16\x03\x01\x02\0\x01\0", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", "413"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "413"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
            ("", "incomplete"),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n", "incomplete"),
        ] {
            assert_eq!(code(request), expected, "{request:?}");
        }
    }

    #[test]
    fn head_has_the_headers_of_get_and_no_body() {
        for path in ["/metrics", "/", "/other"] {
            let of = |method: &str| answer_to(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
            let (get, head) = (of("GET"), of("HEAD"));
            assert_eq!(get.head, head.head);
            assert!(get.head.contains(&format!("Content-Length: {}\r\n", get.body.len())) && head.body.is_empty());
        }
    }

    #[test]
    fn other_methods_learn_which_are_allowed() {
        let answer = answer_to("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(answer.head.contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(START_PAGE.contains("href=\"/metrics\""));
    }

    #[test]
    fn large_headers_are_refused() {
        let request = |size: usize| format!("GET /metrics HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(size));
        assert_eq!(code(&request(8000)), "incomplete");
        assert_eq!(code(&request(MAX_HEADER)), "431");
        let many = "X: y\r\n".repeat(MAX_HEADERS);
        assert_eq!(code(&format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{many}\r\n")), "431");
    }

    #[test]
    fn without_a_sample_there_is_no_page() {
        let answer = answer(b"GET /metrics HTTP/1.0\r\n\r\n", || "".into()).unwrap();
        assert_eq!((answer.code, &*answer.body), ("503", "There is no sample yet.\n"));
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
            let early = answer(&bytes, || "page".into());
            if let Some(answer) = &early {
                prop_assert!(answer.head.ends_with("\r\n\r\n"));
            }
            bytes.resize(MAX_HEADER, b'x');
            prop_assert!(answer(&bytes, || "page".into()).is_some());
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
        assert!(error.hint.contains(&format!("ss -ltnp 'sport = :{}'", address.port())), "{}", error.hint);
        // A documentation address: RFC 5737.
        let error = listen("192.0.2.1:9864").unwrap_err();
        assert!(error.what.starts_with("could not listen on 192.0.2.1:9864: "), "{error}");
        assert!(error.hint.contains("ip address"), "{}", error.hint);
        let error = listen("no-such-host.invalid:9864").unwrap_err();
        assert!(error.what.starts_with("could not listen on no-such-host.invalid:9864: "), "{error}");
        assert!(!error.what.contains('\n') && error.hint.starts_with("use an IP address"));
    }
}
