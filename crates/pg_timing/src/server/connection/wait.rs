//! Waits for a socket.

use libc::c_int;
use std::time::Duration;

/// The longest single wait. After each wait the caller checks Ctrl-C and its time limit.
const INTERVAL: Duration = Duration::from_millis(50);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
    /// whichever is possible first
    Both,
}

/// Waits a moment. Returns whether the socket is ready.
pub fn wait(socket: c_int, direction: Direction) -> bool {
    let events = match direction {
        Direction::Read => libc::POLLIN,
        Direction::Write => libc::POLLOUT,
        Direction::Both => libc::POLLIN | libc::POLLOUT,
    };
    let mut socket = libc::pollfd { fd: socket, events, revents: 0 };
    // SAFETY: the list has one descriptor. An interrupted wait only ends earlier.
    unsafe { libc::poll(&mut socket, 1, INTERVAL.as_millis() as c_int) };
    socket.revents != 0
}
