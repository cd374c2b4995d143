//! The directory of an output file. It is opened again for each write, because someone may create it anew.

use crate::error::Error;
use crate::human::reason;
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsString;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A directory is only searched. Linux needs no permission to read it.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = OFlags::RDONLY;

/// The mode of output files: programs of other users read them.
pub const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

const OTHER_DIRECTORY: &str = "name a file in another directory";

/// Device and inode.
pub type Identity = (u64, u64);

/// A directory, and the name of a file in it.
pub struct Folder {
    /// of the file, for messages
    pub path: PathBuf,
    directory: PathBuf,
    pub name: OsString,
    first: Identity,
}

impl Folder {
    /// Returns the directory of a file. It must exist.
    pub fn of(file: &Path) -> std::result::Result<Folder, Error> {
        let name = file.file_name().filter(|_| !file.as_os_str().as_encoded_bytes().ends_with(b"/"));
        let Some(name) = name else {
            return Err(Error::new(format!("\"{}\" is not a file name", file.display()), "name a file"));
        };
        let directory = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut folder = Folder { path: file.into(), directory: directory.into(), name: name.into(), first: (0, 0) };
        let opened = folder.resolve().and_then(|open| Ok(identity(&rustix::fs::fstat(open)?)));
        folder.first = opened.map_err(|error| folder.not_writable(&error))?;
        Ok(folder)
    }

    fn resolve(&self) -> Result<OwnedFd> {
        let flags = SEARCH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(CWD, &self.directory, flags, Mode::empty())?)
    }

    /// Returns the open directory. For root, a directory that other users can change must be the one from the start:
    /// otherwise its owner could lead root to a directory that only root can change.
    pub fn open(&self) -> Result<OwnedFd> {
        let open = self.resolve()?;
        let state = rustix::fs::fstat(&open)?;
        let was_first = identity(&state) == self.first;
        if is_root() && !was_first && !is_only_roots(&self.directory, &state) {
            let path = self.directory.display();
            return Err(std::io::Error::other(format!("another user has replaced the directory \"{path}\"")));
        }
        Ok(open)
    }

    /// Returns the error that this file cannot be written, with a hint.
    pub fn not_writable(&self, error: &std::io::Error) -> Error {
        let directory = self.directory.display();
        let hint = match error.kind() {
            // procfs has the directory, and no file can be created there.
            ErrorKind::NotFound if self.resolve().is_ok() => OTHER_DIRECTORY.into(),
            ErrorKind::NotFound => format!("create the directory: mkdir -p \"{directory}\""),
            // Root may write to each directory, except in file systems that permit no new files, for example sysfs.
            ErrorKind::PermissionDenied if is_root() => OTHER_DIRECTORY.into(),
            ErrorKind::PermissionDenied => format!("let this user write to the directory \"{directory}\""),
            ErrorKind::StorageFull => format!("free space in the file system of \"{directory}\""),
            _ if error.raw_os_error() == Some(libc::EMFILE) => "raise the limit of open files: ulimit -n".into(),
            _ => OTHER_DIRECTORY.into(),
        };
        Error::new(self.failed(error), hint)
    }

    /// Returns the text that this file could not be written.
    pub fn failed(&self, error: &std::io::Error) -> String {
        format!("could not write \"{}\": {}", self.path.display(), reason(error))
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn identity(state: &rustix::fs::Stat) -> Identity {
    // The types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    (state.st_dev as u64, state.st_ino as u64)
}

/// Returns the device and inode of an open file.
pub fn identity_of(file: impl AsFd) -> Result<Identity> {
    Ok(identity(&rustix::fs::fstat(file)?))
}

/// Returns whether only root can change the directory, and the way to it: no symlink or directory in its path belongs to
/// another user.
fn is_only_roots(path: &Path, state: &rustix::fs::Stat) -> bool {
    let is_roots = |uid: u32, mode: u32| uid == 0 && mode & 0o022 == 0;
    let above = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        path.symlink_metadata().is_ok_and(|state| {
            // The mode of a symlink does not count.
            is_roots(state.uid(), if state.is_symlink() { 0 } else { state.mode() })
        })
    };
    #[allow(clippy::unnecessary_cast)]
    let mode = state.st_mode as u32;
    is_roots(state.st_uid, mode) && path.ancestors().filter(|path| !path.as_os_str().is_empty()).all(above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, rename, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_needs_a_name_and_a_directory() {
        for path in ["", "/", "..", "a/..", "a/"] {
            assert!(Folder::of(Path::new(path)).is_err(), "{path}");
        }
        assert!(Folder::of(Path::new("file")).is_ok());
        let error = Folder::of(Path::new("/no/such/directory/file")).err().unwrap();
        assert_eq!(error.what, "could not write \"/no/such/directory/file\": No such file or directory");
        assert_eq!(error.hint, "create the directory: mkdir -p \"/no/such/directory\"");
    }

    /// Another user can replace the directory by a symlink to a directory of root.
    #[test]
    fn root_writes_only_to_the_directory_from_the_start() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name);
        set_permissions(top.path(), Permissions::from_mode(0o777)).unwrap();
        create_dir(path("shared")).unwrap();
        create_dir(path("private")).unwrap();
        let folder = Folder::of(&path("shared/file")).unwrap();
        assert!(folder.open().is_ok());
        rename(path("shared"), path("moved")).unwrap();
        symlink("private", path("shared")).unwrap();
        assert_eq!(folder.open().is_err(), is_root());
        std::fs::remove_file(path("shared")).unwrap();
        rename(path("moved"), path("shared")).unwrap();
        assert!(folder.open().is_ok());
    }
}
