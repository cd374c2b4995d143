//! One connection: reads a request, writes the answer, and waits until the client has read it. No call waits.

use super::answer::{Answer, MAX_HEADER, answer};
use super::{Limits, Requests, SharedPage};
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Bytes that are read at a time. A request of Prometheus fits.
const CHUNK: usize = 1024;

/// How long, and for how many bytes, the rest of a client's data is read after the answer. If a connection is closed while
/// data is unread, the kernel resets it, and the client may lose the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 * 1024;

/// An open connection.
pub struct Connection {
    stream: TcpStream,
    /// it is closed at this time
    pub deadline: Instant,
    state: State,
}

enum State {
    Reading { received: Vec<u8> },
    Writing { answer: Answer, written: usize },
    Lingering { bytes: usize },
}

/// Whether a connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Waiting,
    Done,
}

impl Connection {
    pub fn new(stream: TcpStream, limits: Limits) -> Result<Connection> {
        stream.set_nonblocking(true)?;
        let state = State::Reading { received: Vec::new() };
        Ok(Connection { stream, deadline: Instant::now() + limits.request, state })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns what it waits for.
    pub fn events(&self) -> PollFlags {
        match self.state {
            State::Writing { .. } => PollFlags::OUT,
            State::Reading { .. } | State::Lingering { .. } => PollFlags::IN,
        }
    }

    /// Returns whether its request has an answer.
    pub fn is_answered(&self) -> bool {
        !matches!(self.state, State::Reading { .. })
    }

    /// Does what is possible now.
    pub fn advance(&mut self, page: &SharedPage, requests: &Requests) -> Progress {
        loop {
            let done = match &mut self.state {
                State::Reading { received } => read(&mut self.stream, received, page),
                State::Writing { answer, written } => write(&mut self.stream, answer, written),
                State::Lingering { bytes } => discard(&mut self.stream, bytes),
            };
            match done {
                Ok(next) => {
                    match &next {
                        State::Writing { answer, .. } => requests.count(answer.status.0),
                        State::Lingering { .. } => self.deadline = self.deadline.min(Instant::now() + LINGER),
                        State::Reading { .. } => {}
                    }
                    self.state = next;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Progress::Done,
            }
        }
    }

    /// Closes it because its time is over.
    pub fn expire(mut self, requests: &Requests) {
        // A client that has sent nothing expects no answer. Browsers open such connections in advance.
        if matches!(&self.state, State::Reading { received } if !received.is_empty()) {
            let Answer { status, head, body } = Answer::timeout();
            requests.count(status.0);
            // The socket's buffer is empty, so one call writes everything, unless the client is gone.
            _ = self.stream.write(format!("{head}{body}").as_bytes());
        }
    }
}

/// Returns the next state, when the request is complete.
fn read(stream: &mut TcpStream, received: &mut Vec<u8>, page: &SharedPage) -> Result<State> {
    loop {
        let mut chunk = [0; CHUNK];
        let room = CHUNK.min(MAX_HEADER - received.len());
        let count = stream.read(&mut chunk[..room])?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&chunk[..count]);
        let page = || page.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(answer) = answer(received, page) {
            return Ok(State::Writing { answer, written: 0 });
        }
    }
}

/// Returns the next state, when the whole answer is written.
fn write(stream: &mut TcpStream, answer: &Answer, written: &mut usize) -> Result<State> {
    let (head, body) = (answer.head.as_bytes(), answer.body.as_bytes());
    while *written < head.len() + body.len() {
        let rest = if *written < head.len() { &head[*written..] } else { &body[*written - head.len()..] };
        match stream.write(rest)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => *written += count,
        }
    }
    stream.shutdown(Shutdown::Write)?;
    Ok(State::Lingering { bytes: 0 })
}

/// Reads and ignores data until the client closes the connection. That is an error here, as everything else that ends it.
fn discard(stream: &mut TcpStream, bytes: &mut usize) -> Result<State> {
    while *bytes < LINGER_BYTES {
        match stream.read(&mut [0; CHUNK])? {
            0 => break,
            count => *bytes += count,
        }
    }
    Err(ErrorKind::ConnectionAborted.into())
}
