//! Removes a server that was not shut down.

use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit. Backends may still write files until they end.
const LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Ends the server's processes, and removes its shared memory and its folder.
pub fn remove(folder: &Path) {
    let lock = Lock::read(folder);
    if let Some(lock) = &lock {
        stop(lock.postmaster);
        lock.remove_shared_memory();
    }
    let start = Instant::now();
    while folder.exists() && std::fs::remove_dir_all(folder).is_err() && start.elapsed() < LIMIT {
        std::thread::sleep(PAUSE);
    }
}

/// Stops the postmaster with SIGQUIT, and with SIGKILL after half of the time limit.
fn stop(postmaster: libc::pid_t) {
    let start = Instant::now();
    let mut signal = libc::SIGQUIT;
    // SAFETY: it only sends a signal. It fails after the process has ended.
    while unsafe { libc::kill(postmaster, signal) } == 0 && start.elapsed() < LIMIT {
        std::thread::sleep(PAUSE);
        signal = if start.elapsed() > LIMIT / 2 { libc::SIGKILL } else { 0 };
    }
}

/// The contents of `postmaster.pid`, which exists until the server is shut down:
/// <https://github.com/postgres/postgres/blob/master/src/include/utils/pidfile.h>
struct Lock {
    postmaster: libc::pid_t,
    shared_memory: Option<libc::c_int>,
}

impl Lock {
    fn read(folder: &Path) -> Option<Lock> {
        Lock::parse(&std::fs::read_to_string(folder.join("data/postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Lock> {
        let mut lines = text.lines();
        // The server that initdb starts writes a negative number.
        let process: libc::pid_t = lines.next()?.trim().parse().ok()?;
        let postmaster = process.checked_abs().filter(|&process| process > 1)?;
        // The line has the key and the identifier of the segment.
        let shared_memory = lines.nth(5).and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        Some(Lock { postmaster, shared_memory })
    }

    /// Removes the shared memory segment, which PostgreSQL uses as a lock. Its other shared memory ends with its processes.
    fn remove_shared_memory(&self) {
        if let Some(segment) = self.shared_memory {
            // SAFETY: IPC_RMID needs no buffer. It fails for a missing segment, and for one of another user.
            unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_are_parsed() {
        let lock =
            Lock::parse("4711\n/tmp/x/data\n1763760000\n5432\n/tmp/x\n\n  2753610    131072\nready   \n").unwrap();
        assert_eq!((lock.postmaster, lock.shared_memory), (4711, Some(131_072)));
        assert_eq!(Lock::parse("4711\n").unwrap().shared_memory, None);
        assert_eq!(Lock::parse("-4711\n").unwrap().postmaster, 4711);
        for bad in ["", "x\n", "1\n", "-1\n", "-2147483648\n"] {
            assert!(Lock::parse(bad).is_none(), "{bad:?}");
        }
    }
}
