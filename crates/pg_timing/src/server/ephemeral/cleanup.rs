//! Removes a server that was not shut down.
//!
//! This process may be root, and the server's user can write anything into the folder. So this module removes only
//! processes and shared memory that belong to that user and to this server.

use super::PAUSE;
use super::marker::{MARKER, NEW_MARKER, open_marker};
use super::removal_limit::RemovalLimit;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A server nests its directories less deeply. But the server's user can nest directories without a limit.
const MAX_DEPTH: u32 = 64;

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
    let lock = Lock::read(&open);
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

/// Returns the open folder, or `None` if it is a symlink or does not belong to this user. The open folder stays the
/// same, even if another user gives its name to another folder later.
pub fn open_folder(folder: &Path, owner: libc::uid_t) -> Option<OwnedFd> {
    let open = open_directory(CWD, folder).ok()?;
    fstat(&open).is_ok_and(|state| state.st_uid == owner).then_some(open)
}

fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Removes the folder. Its marker is removed last, so that a later run can continue the removal.
fn remove_open(open: &OwnedFd, folder: &Path) -> rustix::io::Result<()> {
    remove_contents(open, MAX_DEPTH, Some(MARKER))?;
    match unlinkat(open, MARKER, AtFlags::empty()) {
        // An earlier attempt has removed it.
        Err(Errno::NOENT) => {}
        removed => removed?,
    }
    rustix::fs::rmdir(folder)
}

/// Removes the contents of a directory, except for one name. Symlinks are not followed.
fn remove_contents(directory: &OwnedFd, depth: u32, except: Option<&str>) -> rustix::io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if [Some("."), Some(".."), except].iter().flatten().any(|other| name.to_bytes() == other.as_bytes()) {
            continue;
        }
        match remove_entry(directory, name, depth) {
            // A process of the server has removed it meanwhile.
            Err(Errno::NOENT) => {}
            removed => removed?,
        }
    }
    Ok(())
}

fn remove_entry(directory: &OwnedFd, name: &CStr, depth: u32) -> rustix::io::Result<()> {
    match unlinkat(directory, name, AtFlags::empty()) {
        // A directory: Linux returns ISDIR, other systems PERM.
        Err(error @ (Errno::ISDIR | Errno::PERM)) => {
            let contents =
                open_directory(directory, name).map_err(|open| if open == Errno::NOENT { open } else { error })?;
            remove_contents(&contents, depth.checked_sub(1).ok_or(Errno::LOOP)?, None)?;
            unlinkat(directory, name, AtFlags::REMOVEDIR)
        }
        removed => removed,
    }
}

/// Stops the server's processes with SIGQUIT, and with SIGKILL after half of the time limit.
///
/// They are found by their owner and their working directory. The lock file is not used, because the server's user can
/// change it. Returns false if processes remain at the end of the time limit.
#[cfg(target_os = "linux")]
fn stop(folder: &Path, owner: libc::uid_t, limit: &RemovalLimit) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let mut signal = Some(Signal::QUIT);
    loop {
        let processes = server_processes(folder, owner);
        if processes.is_empty() || !limit.is_left() {
            return processes.is_empty();
        }
        for process in signal.iter().flat_map(|_| &processes) {
            // The descriptor stays with the process. A process id could be reused between the check and the signal.
            let descriptor = Pid::from_raw(*process).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            let Some(descriptor) = descriptor.filter(|_| is_server(*process, folder, owner)) else { continue };
            _ = signal.map(|signal| pidfd_send_signal(&descriptor, signal));
        }
        std::thread::sleep(PAUSE);
        signal = limit.is_half_over().then_some(Signal::KILL);
    }
}

/// Returns true without stopping a process: without /proc, the owner of a process is not known. The postmaster notices
/// within a minute that its lock file is missing, and then ends.
#[cfg(not(target_os = "linux"))]
fn stop(_: &Path, _: libc::uid_t, _: &RemovalLimit) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn server_processes(folder: &Path, owner: libc::uid_t) -> Vec<libc::pid_t> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|process| is_server(*process, folder, owner)).collect()
}

/// Returns whether the process belongs to the user and runs in the server's data directory, as all of a server's
/// processes do.
#[cfg(target_os = "linux")]
fn is_server(process: libc::pid_t, folder: &Path, owner: libc::uid_t) -> bool {
    let process = Path::new("/proc").join(process.to_string());
    let is_owners = process.metadata().is_ok_and(|process| process.uid() == owner);
    is_owners && process.join("cwd").read_link().is_ok_and(|directory| directory == folder.join("data"))
}

/// The contents of `postmaster.pid`, which exists until the server is shut down:
/// <https://github.com/postgres/postgres/blob/master/src/include/utils/pidfile.h>
struct Lock {
    postmaster: libc::pid_t,
    shared_memory: Option<libc::c_int>,
}

impl Lock {
    fn read(folder: &OwnedFd) -> Option<Lock> {
        // A symlink would make root read another file; a named pipe would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let data = open_directory(folder, "data").ok()?;
        let file = openat(&data, "postmaster.pid", flags, Mode::empty()).ok()?;
        let mut text = String::new();
        // A lock file has about 100 bytes.
        std::io::Read::read_to_string(&mut std::io::Read::take(std::fs::File::from(file), 4096), &mut text).ok()?;
        Lock::parse(&text)
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

    /// Removes the shared memory segment, which PostgreSQL uses as a lock, if the postmaster created it and no process
    /// uses it. The server's other shared memory ends with its processes.
    fn remove_shared_memory(&self, owner: libc::uid_t) {
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
    use super::super::marker::mark;
    use super::*;
    use std::process::{Child, Command};

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

    fn own_uid() -> libc::uid_t {
        // SAFETY: it only returns a number.
        unsafe { libc::geteuid() }
    }

    /// A process in this directory, as a postmaster is in its data directory.
    fn process_in(directory: &Path) -> Child {
        Command::new("sleep").arg("1000").current_dir(directory).spawn().unwrap()
    }

    /// Returns a marked folder with a data directory.
    fn marked_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        drop(mark(folder.path()).unwrap());
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
