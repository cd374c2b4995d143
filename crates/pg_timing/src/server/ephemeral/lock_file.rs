//! A server's lock file, and the shared memory that it names.

use super::folder::open_directory;
use rustix::fs::{Mode, OFlags, openat};
use std::os::fd::OwnedFd;

/// The contents of `postmaster.pid`, which exists until the server is shut down:
/// <https://github.com/postgres/postgres/blob/master/src/include/utils/pidfile.h>
pub struct LockFile {
    postmaster: libc::pid_t,
    shared_memory: Option<libc::c_int>,
}

impl LockFile {
    /// Reads the lock file in the server's folder.
    pub fn read(folder: &OwnedFd) -> Option<LockFile> {
        // A symlink would make root read another file; a named pipe would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let data = open_directory(folder, "data").ok()?;
        let file = openat(&data, "postmaster.pid", flags, Mode::empty()).ok()?;
        let mut text = String::new();
        // A lock file has about 100 bytes.
        std::io::Read::read_to_string(&mut std::io::Read::take(std::fs::File::from(file), 4096), &mut text).ok()?;
        LockFile::parse(&text)
    }

    fn parse(text: &str) -> Option<LockFile> {
        let mut lines = text.lines();
        // The server that initdb starts writes a negative number.
        let process: libc::pid_t = lines.next()?.trim().parse().ok()?;
        let postmaster = process.checked_abs().filter(|&process| process > 1)?;
        // The line has the key and the identifier of the segment.
        let shared_memory = lines.nth(5).and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        Some(LockFile { postmaster, shared_memory })
    }

    /// Removes the shared memory segment, which PostgreSQL uses as a lock, if the postmaster created it and no process
    /// uses it. The server's other shared memory ends with its processes.
    pub fn remove_shared_memory(&self, owner: libc::uid_t) {
        let Some(segment) = self.shared_memory else { return };
        // SAFETY: a structure of zero bytes is valid, and IPC_STAT overwrites it. IPC_RMID needs no buffer.
        unsafe {
            let mut state: libc::shmid_ds = std::mem::zeroed();
            let is_known = libc::shmctl(segment, libc::IPC_STAT, &mut state) == 0;
            let is_owners = state.shm_perm.uid == owner && state.shm_perm.cuid == owner;
            if is_known && is_owners && state.shm_cpid == self.postmaster && state.shm_nattch == 0 {
                libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_are_parsed() {
        let lock =
            LockFile::parse("4711\n/tmp/x/data\n1763760000\n5432\n/tmp/x\n\n  2753610    131072\nready   \n").unwrap();
        assert_eq!((lock.postmaster, lock.shared_memory), (4711, Some(131_072)));
        assert_eq!(LockFile::parse("4711\n").unwrap().shared_memory, None);
        assert_eq!(LockFile::parse("-4711\n").unwrap().postmaster, 4711);
        for bad in ["", "x\n", "1\n", "-1\n", "-2147483648\n"] {
            assert!(LockFile::parse(bad).is_none(), "{bad:?}");
        }
    }
}
