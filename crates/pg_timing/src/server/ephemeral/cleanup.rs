//! Removes a server that was not shut down.
//!
//! This process may be root, and the server's user can write anything into the folder. So this module removes only
//! processes and shared memory that belong to that user and to this server.

use super::PAUSE;
use super::folder::{open_folder, remove_open};
use super::lock_file::LockFile;
use super::marker::{NEW_MARKER, open_marker};
use super::processes::stop;
use super::removal_limit::RemovalLimit;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use std::path::Path;

/// Ends the server's processes, and removes its shared memory and its folder. `owner` is the server's user. Returns an
/// error if the folder is not removed. A folder of another user, or of another program, is left alone without an error.
pub fn remove(folder: &Path, owner: libc::uid_t, limit: &RemovalLimit) -> std::io::Result<()> {
    let Some(open) = open_folder(folder, owner) else { return Ok(()) };
    if open_marker(&open).is_none() {
        // The guardian may have ended before it marked the folder. Then the folder is empty.
        _ = unlinkat(&open, NEW_MARKER, AtFlags::empty());
        _ = rustix::fs::rmdir(folder);
        return Ok(());
    }
    let lock = LockFile::read(&open);
    if !stop(folder, owner, limit) {
        return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "its server still runs"));
    }
    if let Some(lock) = lock {
        lock.remove_shared_memory(owner);
    }
    loop {
        match remove_open(&open, folder) {
            // A process has written a file meanwhile.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) if limit.is_left() => std::thread::sleep(PAUSE),
            removed => return Ok(removed?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::marker::{MARKER, mark_abandoned};
    use super::*;

    fn own_uid() -> libc::uid_t {
        // SAFETY: it only returns a number.
        unsafe { libc::geteuid() }
    }

    /// A process in this directory, as a postmaster is in its data directory.
    #[cfg(target_os = "linux")]
    fn process_in(directory: &Path) -> std::process::Child {
        let process = std::process::Command::new("sleep").arg("1000").current_dir(directory).spawn().unwrap();
        let current = Path::new("/proc").join(process.id().to_string()).join("cwd");
        // qemu-user returns before the new process has changed its directory.
        while current.read_link().unwrap() != directory {
            std::thread::sleep(PAUSE);
        }
        process
    }

    /// Returns a marked folder with a data directory.
    fn marked_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        mark_abandoned(folder.path());
        std::fs::create_dir(folder.path().join("data")).unwrap();
        folder
    }

    fn remove(folder: &Path, owner: libc::uid_t) {
        _ = super::remove(folder, owner, &RemovalLimit::new(None));
    }

    /// Returns a folder whose lock file names this process and this segment.
    fn folder_with_lock(process: u32, segment: libc::c_int) -> tempfile::TempDir {
        let folder = marked_folder();
        let lock = format!("{process}\n/data\n1763760000\n5432\n/tmp\n\n 1 {segment}\nready\n");
        std::fs::write(folder.path().join("data/postmaster.pid"), lock).unwrap();
        folder
    }

    fn new_segment() -> libc::c_int {
        // SAFETY: it creates a segment that no other process knows.
        unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600) }
    }

    /// Removes a segment. Returns whether it existed.
    fn segment_existed(segment: libc::c_int) -> bool {
        // SAFETY: a segment of this process.
        unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) == 0 }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_servers_own_process_is_stopped() {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut other = process_in(elsewhere.path());
        let folder = folder_with_lock(other.id(), -1);
        remove(folder.path(), own_uid());
        assert!(!folder.path().exists());
        assert_eq!(other.try_wait().unwrap(), None, "a process of another program is not stopped");
        _ = (other.kill(), other.wait());

        let folder = marked_folder();
        let mut server = process_in(&folder.path().join("data"));
        // A damaged lock file does not protect a server.
        std::fs::write(folder.path().join("data/postmaster.pid"), "x").unwrap();
        // Another program waits for the process, as the guardian or init does.
        let waited = std::thread::spawn(move || server.wait().unwrap());
        remove(folder.path(), own_uid());
        assert!(!folder.path().exists() && !waited.join().unwrap().success());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_folder_of_a_running_server_is_not_removed() {
        let folder = folder_with_lock(1_999_999_999, -1);
        let mut server = process_in(&folder.path().join("data"));
        let stop = std::sync::atomic::AtomicBool::new(true);
        let error = super::remove(folder.path(), own_uid(), &RemovalLimit::new(Some(&stop))).unwrap_err();
        assert_eq!(error.to_string(), "its server still runs");
        assert!(folder.path().join("data/postmaster.pid").exists() && folder.path().join(MARKER).exists());
        _ = (server.kill(), server.wait());
    }

    #[test]
    fn only_the_servers_own_shared_memory_is_removed() {
        let others = new_segment();
        let folder = folder_with_lock(1_999_999_999, others);
        remove(folder.path(), own_uid());
        assert!(segment_existed(others), "another process created it");
        let own = new_segment();
        let folder = folder_with_lock(std::process::id(), own);
        remove(folder.path(), own_uid());
        assert!(!segment_existed(own));
    }

    #[test]
    fn folders_of_others_and_symlinks_stay() {
        let folder = folder_with_lock(1_999_999_999, -1);
        remove(folder.path(), own_uid() + 1);
        assert!(folder.path().exists());
        let link = tempfile::tempdir().unwrap();
        let link = link.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        remove(&link, own_uid());
        assert!(folder.path().join("data").exists() && link.symlink_metadata().is_ok());
    }

    /// If the parent directory is shared, another user can give such a name to any of our directories.
    #[test]
    fn folders_without_a_marker_stay() {
        let folder = folder_with_lock(1_999_999_999, -1);
        std::fs::write(folder.path().join(MARKER), "something else").unwrap();
        remove(folder.path(), own_uid());
        assert!(folder.path().join("data/postmaster.pid").exists());
        std::fs::remove_file(folder.path().join(MARKER)).unwrap();
        remove(folder.path(), own_uid());
        assert!(folder.path().join("data/postmaster.pid").exists());
    }

    #[test]
    fn the_removal_follows_no_symlinks_and_ends_in_deep_directories() {
        let other = folder_with_lock(1_999_999_999, -1);
        let folder = marked_folder();
        std::os::unix::fs::symlink(other.path(), folder.path().join("data/link")).unwrap();
        remove(folder.path(), own_uid());
        assert!(!folder.path().exists() && other.path().join("data/postmaster.pid").exists());

        let folder = marked_folder();
        std::fs::create_dir_all(folder.path().join("x/".repeat(100))).unwrap();
        let removed = super::remove(folder.path(), own_uid(), &RemovalLimit::new(None));
        assert!(removed.is_err() && folder.path().join(MARKER).exists(), "the marker stays until the end");
    }
}
