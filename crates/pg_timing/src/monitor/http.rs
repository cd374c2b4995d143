//! The HTTP endpoint that Prometheus scrapes.
//!
//! One thread serves all connections, with one request per connection. A new connection is read at once, so a scrape gets
//! its answer before other connections can disturb it. If there are too many connections, the oldest one is closed: a client
//! that sends nothing cannot keep others out.

mod address;
mod answer;
mod connection;
mod server;

use super::signals::without_signals;
use crate::error::Error;
use crate::human::reason;
use address::Address;
use server::Server;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The page for Prometheus, which the monitor replaces after each sample.
pub type SharedPage = Arc<Mutex<Arc<str>>>;

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
        let (listener, address) = Address::parse(address)?.listen()?;
        Ok(Endpoint { listener: Some(listener), address, requests: Requests::default(), running: None })
    }

    /// Returns the address with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to answer requests in its own thread. While the page is empty, the answer is that there is none yet.
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
        let server = Server::new(listener, stopped, page, self.requests.clone(), limits)?;
        let thread = without_signals(|| std::thread::Builder::new().name("http".into()).spawn(move || server.run()))?;
        Ok(Running { stop, thread })
    }

    /// Returns the number of requests by the status code of the answer. Connections beyond the limit are `refused`.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        let counts = self.requests.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| (name.to_string(), *count)).collect()
    }

    /// Closes all connections and the port, and ends the thread.
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
