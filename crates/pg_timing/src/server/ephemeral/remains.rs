//! What a server leaves behind that was not shut down: removed.

use std::path::Path;
use std::time::{Duration, Instant};

/// Backends that are on their way out may still write.
const LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Ends what is left of the server, and removes its shared memory and its folder.
pub fn clear(folder: &Path) {
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

/// At once, and by force if it takes long.
fn stop(postmaster: libc::pid_t) {
    let start = Instant::now();
    let mut signal = libc::SIGQUIT;
    // SAFETY: it only sends a signal; fails once the process is gone.
    while unsafe { libc::kill(postmaster, signal) } == 0 && start.elapsed() < LIMIT {
        std::thread::sleep(PAUSE);
        signal = if start.elapsed() > LIMIT / 2 { libc::SIGKILL } else { 0 };
    }
}

/// `postmaster.pid`, which is there as long as the server has not been shut down in order:
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
        // initdb's own server writes it as a negative number.
        let process: libc::pid_t = lines.next()?.trim().parse().ok()?;
        let postmaster = process.checked_abs().filter(|&process| process > 1)?;
        // Its key, and its number.
        let shared_memory = lines.nth(5).and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        Some(Lock { postmaster, shared_memory })
    }

    /// A segment of some bytes that PostgreSQL holds as a lock; the rest is mapped, and gone with it.
    fn remove_shared_memory(&self) {
        if let Some(segment) = self.shared_memory {
            // SAFETY: removing takes no buffer; it fails for what is gone, or not ours.
            unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files() {
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
