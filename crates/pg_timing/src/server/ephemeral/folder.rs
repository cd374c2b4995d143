//! Opens and removes a folder whose contents another user can change meanwhile. Symlinks are not followed.

use super::marker::MARKER;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// A server nests its directories less deeply. But the server's user can nest directories without a limit.
const MAX_DEPTH: u32 = 64;

/// Returns the open folder, or `None` if it is a symlink or does not belong to this user. The open folder stays the
/// same, even if another user gives its name to another folder later.
pub fn open_folder(folder: &Path, owner: libc::uid_t) -> Option<OwnedFd> {
    let open = open_directory(CWD, folder).ok()?;
    fstat(&open).is_ok_and(|state| state.st_uid == owner).then_some(open)
}

pub fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Removes the folder. Its marker is removed last, so that a later run can continue the removal.
pub fn remove_open(open: &OwnedFd, folder: &Path) -> rustix::io::Result<()> {
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
