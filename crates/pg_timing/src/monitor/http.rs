//! The HTTP endpoint that Prometheus scrapes: one request per connection, and a thread for each connection.
//!
//! If there are too many connections, the oldest one is closed: a client that sends nothing cannot keep others out.

mod answer;

use super::signals::without_signals;
use crate::error::Error;
use crate::human::reason;
use answer::{Answer, MAX_HEADER, answer};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The page for Prometheus, which the monitor replaces after each sample.
pub type SharedPage = Arc<Mutex<Arc<str>>>;

/// The host if the address has none: other hosts cannot read the metrics unless the user wants it.
const LOCAL: &str = "127.0.0.1";

/// Connections that wait to be accepted. The default of 128 fills up in one burst, and then clients wait for a second before
/// they try again. The kernel reduces larger values to its own limit.
const BACKLOG: i32 = 4096;

/// Bytes that are read at a time. A request of Prometheus fits.
const CHUNK: usize = 1024;

/// A connection needs less: the page is shared.
const STACK: usize = 128 * 1024;

/// A connection is not closed for a newer one before this age: its thread starts and reads a request within it.
const MIN_AGE: Duration = Duration::from_millis(10);

/// How long, and for how many bytes, the rest of a client's data is read after the answer. If a connection is closed while
/// data is unread, the kernel resets it, and the client may lose the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 * 1024;

/// Pause after an error that remains, for example if there are no file descriptors. Without it, the thread would try again at
/// once and use a whole CPU.
const PAUSE: Duration = Duration::from_millis(100);

/// The name for connections beyond the limit in the counts of requests.
const REFUSED: &str = "refused";

/// The limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections. Prometheus needs one. The systemd unit allows 256 open files and 128 threads, and the samples need
    /// some of them.
    pub connections: usize,
    /// Time from the connection to the end of the answer. A scrape takes milliseconds, and Prometheus waits for 10 s.
    pub request: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 64, request: Duration::from_secs(5) }
    }
}

/// An endpoint. It listens from the start, but it answers only after `start`.
pub struct Endpoint {
    /// `None` after the end
    listener: Option<TcpListener>,
    address: SocketAddr,
    requests: Requests,
    running: Option<Running>,
}

struct Running {
    /// the thread ends when this socket is closed
    stop: UnixStream,
    thread: JoinHandle<()>,
}

impl Endpoint {
    /// Listens on `ADDRESS:PORT`. `:PORT` or `PORT` alone means 127.0.0.1. Port 0 means any free port.
    pub fn bind(address: &str) -> Result<Endpoint, Error> {
        let (listener, address) = listen(address)?;
        Ok(Endpoint { listener: Some(listener), address, requests: Requests::default(), running: None })
    }

    /// Returns the address with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to answer requests. While the page is empty, the answer is that there is none yet.
    pub fn start(&mut self, page: SharedPage) -> Result<(), Error> {
        self.start_with(page, Limits::default())
    }

    /// Starts with other limits.
    pub fn start_with(&mut self, page: SharedPage, limits: Limits) -> Result<(), Error> {
        let running = self.thread(page, limits).map_err(|error| {
            let what = format!("could not start the HTTP endpoint: {}", reason(&error));
            Error::new(what, "check the limits for threads and open files: ulimit -u; ulimit -n")
        })?;
        self.running = Some(running);
        Ok(())
    }

    fn thread(&self, page: SharedPage, limits: Limits) -> std::io::Result<Running> {
        let (stop, stopped) = UnixStream::pair()?;
        let listener = self.listener.as_ref().ok_or(ErrorKind::NotConnected)?.try_clone()?;
        listener.set_nonblocking(true)?;
        let client = Client { page, requests: self.requests.clone(), limits };
        let mut server = Server { listener, stopped, client, connections: VecDeque::new() };
        // The threads of the connections block signals, too.
        let thread = without_signals(|| Builder::new().name("http".into()).spawn(move || server.run()))?;
        Ok(Running { stop, thread })
    }

    /// Returns the number of requests by the status code of the answer. Connections beyond the limit are `refused`.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        let counts = self.requests.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| (name.to_string(), *count)).collect()
    }

    /// Closes all connections and the port, and ends the threads.
    pub fn stop(&mut self) {
        self.listener = None;
        if let Some(Running { stop, thread }) = self.running.take() {
            drop(stop);
            // It never waits for a client.
            _ = thread.join();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Counts requests by a status code or another name.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Requests {
    fn count(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }
}

/// Accepts connections.
struct Server {
    listener: TcpListener,
    /// closed by the other side when the thread must end
    stopped: UnixStream,
    client: Client,
    /// the oldest first
    connections: VecDeque<Connection>,
}

/// An open connection and its thread.
struct Connection {
    stream: Arc<TcpStream>,
    thread: JoinHandle<()>,
    answered: Arc<AtomicBool>,
    since: Instant,
}

impl Connection {
    /// Closes it, which ends each wait of its thread.
    fn close(self) {
        _ = self.stream.shutdown(Shutdown::Both);
        _ = self.thread.join();
    }
}

impl Server {
    /// Serves until the other side closes the socket `stopped`.
    fn run(&mut self) {
        loop {
            let mut fds = [PollFd::new(&self.stopped, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
            let ready = poll(&mut fds, None);
            if ready.is_ok() && !fds[0].revents().is_empty() {
                break self.connections.drain(..).for_each(Connection::close);
            }
            match self.accept() {
                Ok(()) => {}
                // The client has closed the connection, or there is none.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                // There are no file descriptors, threads or memory. The oldest connection gives its own to the next client.
                Err(_) => {
                    self.close_oldest();
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Accepts one connection and starts its thread.
    fn accept(&mut self) -> std::io::Result<()> {
        let stream = Arc::new(self.listener.accept()?.0);
        stream.set_nonblocking(false)?;
        let (since, answered) = (Instant::now(), Arc::<AtomicBool>::default());
        let (client, own, is_answered) = (self.client.clone(), stream.clone(), answered.clone());
        let serve = move || client.serve(&own, since, &is_answered);
        let thread = Builder::new().name("http-client".into()).stack_size(STACK).spawn(serve)?;
        self.connections.retain(|connection| !connection.thread.is_finished());
        self.connections.push_back(Connection { stream, thread, answered, since });
        if self.connections.len() > self.client.limits.connections {
            self.close_oldest();
        }
        Ok(())
    }

    fn close_oldest(&mut self) {
        let Some(oldest) = self.connections.pop_front() else { return };
        std::thread::sleep(MIN_AGE.saturating_sub(oldest.since.elapsed()));
        if !oldest.thread.is_finished() && !oldest.answered.load(Ordering::Relaxed) {
            self.client.requests.count(REFUSED);
        }
        oldest.close();
    }
}

/// What the thread of a connection needs.
#[derive(Clone)]
struct Client {
    page: SharedPage,
    requests: Requests,
    limits: Limits,
}

impl Client {
    /// Reads a request, writes the answer, and waits until the client has read it.
    fn serve(&self, stream: &TcpStream, since: Instant, answered: &AtomicBool) {
        let deadline = since + self.limits.request;
        if let Ok(answer) = self.answer(stream, deadline) {
            answered.store(true, Ordering::Relaxed);
            self.requests.count(answer.status.0);
            // The answer to a request that was too slow fits into the socket's buffer.
            let latest = deadline.max(Instant::now() + PAUSE);
            let write = |text: &str| write_until(stream, text.as_bytes(), latest);
            if write(&answer.head).and_then(|()| write(&answer.body)).is_ok() {
                _ = stream.shutdown(Shutdown::Write);
                discard(stream, Instant::now() + LINGER);
            }
        }
        // The server has this socket, too.
        _ = stream.shutdown(Shutdown::Both);
    }

    /// Returns the answer to the client's request, or an error if the client expects none.
    fn answer(&self, stream: &TcpStream, deadline: Instant) -> std::io::Result<Answer> {
        let mut received = Vec::new();
        let mut chunk = [0; CHUNK];
        loop {
            let room = CHUNK.min(MAX_HEADER - received.len());
            match read_until(stream, &mut chunk[..room], deadline) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => received.extend_from_slice(&chunk[..count]),
                // A client that has sent nothing expects no answer. Browsers open such connections in advance.
                Err(error) if error.kind() == ErrorKind::TimedOut && !received.is_empty() => {
                    return Ok(Answer::timeout());
                }
                Err(error) => return Err(error),
            }
            let page = || self.page.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(answer) = answer(&received, page) {
                return Ok(answer);
            }
        }
    }
}

/// Returns the time until the deadline, or an error if it is over.
fn left(deadline: Instant) -> std::io::Result<Option<Duration>> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

/// Waits for data until the deadline. Returns the number of bytes, or 0 at the end.
fn read_until(mut stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> std::io::Result<usize> {
    loop {
        stream.set_read_timeout(left(deadline)?)?;
        match stream.read(buffer) {
            // The time limit of a socket can end a little early.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            read => return read,
        }
    }
}

fn write_until(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(left(deadline)?)?;
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads and ignores data until the client closes the connection.
fn discard(stream: &TcpStream, deadline: Instant) {
    let mut bytes = 0;
    while bytes < LINGER_BYTES {
        match read_until(stream, &mut [0; CHUNK], deadline) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes += count,
        }
    }
}

/// Returns a socket that listens, and its address. If a name has several addresses, it is the first one that this host can use.
fn listen(text: &str) -> Result<(TcpListener, SocketAddr), Error> {
    let (host, port) = host_and_port(text)?;
    let failed = |error: std::io::Error| {
        Error::new(format!("could not listen on {host}:{port}: {}", reason(&error)), hint(error.kind(), port))
    };
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
    rustix::net::listen(&listener, BACKLOG).map_err(|error| failed(error.into()))?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Returns the host, without the brackets of an IPv6 address, and the port.
fn host_and_port(text: &str) -> Result<(&str, u16), Error> {
    let refused = |why: &str| {
        let hint = "type ADDRESS:PORT, for example --listen 127.0.0.1:9864";
        Error::new(format!("\"{text}\" is not an address: {why}"), hint)
    };
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (host, port) = match text.rsplit_once(':') {
        Some(parts) => parts,
        None if !text.is_empty() && is_number(text) => ("", text),
        None => return Err(refused("it has no port")),
    };
    let port = Some(port).filter(|port| is_number(port)).and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| refused("the port is not a number from 0 to 65535"))?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match (host, inner) {
        ("", _) => Ok((LOCAL, port)),
        (_, Some(inner)) if !inner.is_empty() => Ok((inner, port)),
        (host, _) if host.contains([':', '[', ']']) => Err(refused("an IPv6 address needs brackets, like [::1]:9864")),
        (host, _) => Ok((host, port)),
    }
}

fn hint(kind: ErrorKind, port: u16) -> String {
    match kind {
        ErrorKind::AddrInUse => {
            format!("choose another port, or find the program that uses it: ss -ltnp 'sport = :{port}'")
        }
        ErrorKind::PermissionDenied => {
            "use a port above 1023: lower ports need the capability CAP_NET_BIND_SERVICE".into()
        }
        ErrorKind::AddrNotAvailable => "use an address of this host: ip address".into(),
        _ => "use an IP address of this host, for example 127.0.0.1 or 0.0.0.0".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for (text, host, port) in [
            ("127.0.0.1:9864", "127.0.0.1", 9864),
            (":9864", LOCAL, 9864),
            ("9864", LOCAL, 9864),
            ("0.0.0.0:0", "0.0.0.0", 0),
            ("[::1]:80", "::1", 80),
            ("db1.example.com:65535", "db1.example.com", 65535),
        ] {
            assert_eq!(host_and_port(text), Ok((host, port)), "{text}");
        }
        for (text, why) in [
            ("", "it has no port"),
            ("localhost", "it has no port"),
            ("127.0.0.1", "it has no port"),
            ("localhost:", "the port is not a number"),
            (":65536", "the port is not a number"),
            (":+80", "the port is not a number"),
            ("http://localhost:80/metrics", "the port is not a number"),
            ("::1", "an IPv6 address needs brackets"),
            ("::1:80", "an IPv6 address needs brackets"),
            ("[]:80", "an IPv6 address needs brackets"),
            ("[::1:80", "an IPv6 address needs brackets"),
        ] {
            let error = host_and_port(text).unwrap_err();
            assert!(error.what.starts_with(&format!("\"{text}\" is not an address: {why}")), "{error}");
            assert!(error.hint.contains("--listen 127.0.0.1:9864"));
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
