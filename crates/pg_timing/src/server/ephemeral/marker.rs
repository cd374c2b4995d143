//! The file that marks a folder of a temporary server. The guardian locks it until the folder is removed.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use std::fs::File;
use std::io::{Read, Result, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The name of the file.
pub const MARKER: &str = "pg_timing.marker";
/// The name until the file is complete and locked. Without it, another run could mistake the folder for a stale one.
pub const NEW_MARKER: &str = "pg_timing.marker.new";
const TEXT: &[u8] = b"pg_timing: temporary server\n";

/// Marks a new folder. The lock ends when the returned file is closed.
pub fn mark(folder: &Path) -> Result<File> {
    let mut file = File::create_new(folder.join(NEW_MARKER))?;
    // Some network file systems have no locks. Later runs cannot lock the file there, either, so they leave the folder.
    _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(TEXT)?;
    std::fs::rename(folder.join(NEW_MARKER), folder.join(MARKER))?;
    Ok(file)
}

/// Opens the file. Returns `None` if the folder has none, because then it is not a folder of a temporary server.
pub fn open_marker(folder: &OwnedFd) -> Option<File> {
    // The server's user can replace the file. A symlink is not followed, and a named pipe does not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, MARKER, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    (&file).take(TEXT.len() as u64 + 1).read_to_end(&mut text).ok()?;
    (text == TEXT).then_some(file)
}

/// Locks the file until it is closed. Returns false if a guardian or another run has locked it.
pub fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Marks a folder, and ends the lock as the end of the guardian does.
#[cfg(test)]
pub fn mark_abandoned(folder: &Path) {
    unlock(&mark(folder).unwrap());
}

/// Ends the lock. Closing the file is not enough in a test: a process that another test is starting may still have a
/// copy of the descriptor.
#[cfg(test)]
pub fn unlock(marker: &File) {
    flock(marker, FlockOperation::Unlock).unwrap();
}
