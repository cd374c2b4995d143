//! Opens the directory of an output. Root writes only to a directory that nobody else can change, and cannot lead elsewhere.
//!
//! For this, root opens each directory on the path by itself, follows symlinks by itself, and checks the open directories. So
//! no other user can change the path between the check and the write.

use crate::error::Error;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A directory is only searched. Linux needs no permission to read it.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = OFlags::RDONLY;

const FLAGS: OFlags = SEARCH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// As many as Linux follows.
const MAX_SYMLINKS: u32 = 40;

const HINT: &str = "use a directory that only root can change, such as /root";

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the directory of an output.
pub fn of(output: &Path) -> &Path {
    output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens the directory. As root, returns an error with a hint if another user can change the directory or the way to it.
pub fn open(directory: &Path) -> Result<OwnedFd> {
    match is_root() {
        true => open_as_root(directory),
        false => Ok(rustix::fs::openat(CWD, directory, FLAGS, Mode::empty())?),
    }
}

/// Returns the hint of an error of `open`, if it has its own.
pub fn hint(error: &std::io::Error) -> Option<&str> {
    error.get_ref()?.downcast_ref().map(|Error { hint, .. }| hint.as_str())
}

fn open_as_root(directory: &Path) -> Result<OwnedFd> {
    let mut open = rustix::fs::openat(CWD, ".", FLAGS, Mode::empty())?;
    let mut path = PathBuf::new();
    let mut is_shared = false;
    // The remaining parts, last first. The first part is the root directory or the working directory.
    let mut parts = reversed(&Path::new(".").join(directory));
    let mut symlinks = 0;
    while let Some(part) = parts.pop() {
        if let Ok(target) = rustix::fs::readlinkat(&open, &part, Vec::new()) {
            let owner = rustix::fs::statat(&open, &part, AtFlags::SYMLINK_NOFOLLOW)?.st_uid;
            let refused = |why: &str| {
                refused(format!("root does not follow the symlink \"{}\", because {why}", path.join(&part).display()))
            };
            // Another user can replace a symlink in a shared directory, or move one of root there.
            if is_shared {
                return Err(refused("other users can write to its directory"));
            }
            if owner != 0 {
                return Err(refused(&format!("it belongs to user {owner}")));
            }
            symlinks += 1;
            if symlinks > MAX_SYMLINKS {
                return Err(Errno::LOOP.into());
            }
            parts.extend(reversed(Path::new(&OsString::from_vec(target.into_bytes()))));
            continue;
        }
        open = rustix::fs::openat(&open, &part, FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        path.push(&part);
        let state = rustix::fs::fstat(&open)?;
        let refused = |why: &str| refused(format!("root does not write below \"{}\", because {why}", path.display()));
        if state.st_uid != 0 {
            return Err(refused(&format!("this directory belongs to user {}", state.st_uid)));
        }
        // The group's permission counts, too: it can stand for the ACL of another user.
        is_shared = state.st_mode & 0o022 != 0;
        // In a sticky directory such as /tmp, other users cannot rename a directory of root.
        let is_sticky = state.st_mode & 0o1000 != 0;
        if is_shared && (!is_sticky || parts.is_empty()) {
            return Err(refused("other users can write to this directory"));
        }
    }
    Ok(open)
}

fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().into()).collect()
}

fn refused(what: String) -> std::io::Error {
    std::io::Error::other(Error::new(what, HINT))
}
