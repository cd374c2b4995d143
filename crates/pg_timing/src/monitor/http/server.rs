//! Accepts connections and serves them, all in one thread.

use super::connection::{Connection, Progress};
use super::{Limits, Requests, SharedPage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Connections that are accepted before the others are served again.
const BATCH: usize = 32;

/// Pause after an error that remains, for example if there are no file descriptors. Without it, the thread would try again at
/// once and use a whole CPU.
const PAUSE: Duration = Duration::from_millis(100);

/// The name for connections beyond the limit in the counts of requests.
const REFUSED: &str = "refused";

pub struct Server {
    listener: TcpListener,
    /// closed by the other side when the thread must end
    stopped: UnixStream,
    page: SharedPage,
    requests: Requests,
    limits: Limits,
    /// the oldest first
    connections: VecDeque<Connection>,
    /// no connection is accepted before this time
    paused_until: Option<Instant>,
}

impl Server {
    pub fn new(
        listener: TcpListener,
        stopped: UnixStream,
        page: SharedPage,
        requests: Requests,
        limits: Limits,
    ) -> std::io::Result<Server> {
        listener.set_nonblocking(true)?;
        stopped.set_nonblocking(true)?;
        Ok(Server { listener, stopped, page, requests, limits, connections: VecDeque::new(), paused_until: None })
    }

    /// Serves until the other side closes the socket `stopped`.
    pub fn run(mut self) {
        loop {
            let ready = self.wait();
            if !matches!((&self.stopped).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock) {
                return;
            }
            self.serve(&ready);
            if self.paused_until.is_none_or(|until| until <= Instant::now()) {
                self.paused_until = None;
                self.accept();
            }
        }
    }

    /// Waits until something can be done. Returns for each connection whether it is ready.
    fn wait(&self) -> Vec<bool> {
        let deadlines = self.connections.iter().map(|connection| connection.deadline);
        let timeout = deadlines.chain(self.paused_until).min().map(|time| {
            let left = time.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ }
        });
        let mut fds = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        fds.extend(self.connections.iter().map(|c| PollFd::from_borrowed_fd(c.fd(), c.events())));
        if self.paused_until.is_none() {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => fds[1..=self.connections.len()].iter().map(|fd| !fd.revents().is_empty()).collect(),
            Err(error) => {
                if error != rustix::io::Errno::INTR {
                    std::thread::sleep(PAUSE);
                }
                vec![true; self.connections.len()]
            }
        }
    }

    fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let connections = std::mem::take(&mut self.connections);
        for (mut connection, ready) in connections.into_iter().zip(ready) {
            if *ready && connection.advance(&self.page, &self.requests) == Progress::Done {
                continue;
            }
            match connection.deadline <= now {
                true => connection.expire(&self.requests),
                false => self.connections.push_back(connection),
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..BATCH {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let Ok(mut connection) = Connection::new(stream, self.limits) else { continue };
                    // A scrape that has waited in the queue has its request ready.
                    if connection.advance(&self.page, &self.requests) == Progress::Waiting {
                        self.connections.push_back(connection);
                    }
                    if self.connections.len() > self.limits.connections {
                        self.close_oldest();
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    // The client has closed the connection.
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => {}
                    // There are no file descriptors or no memory. The oldest connection gives its own to the next client.
                    _ => {
                        self.close_oldest();
                        self.paused_until = Some(Instant::now() + PAUSE);
                        return;
                    }
                },
            }
        }
    }

    fn close_oldest(&mut self) {
        if self.connections.pop_front().is_some_and(|connection| !connection.is_answered()) {
            self.requests.count(REFUSED);
        }
    }
}
