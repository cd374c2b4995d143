//! The place of an output file. Its directory is opened again for each write, because someone may create it anew.

use crate::error::Error;
use crate::human::reason;
use crate::output_directory::{self, is_root};
use rustix::fs::Mode;
use std::ffi::OsString;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

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
}

impl Folder {
    /// Splits the path of a file.
    pub fn of(file: &Path) -> std::result::Result<Folder, Error> {
        let name = file.file_name().filter(|_| !file.as_os_str().as_encoded_bytes().ends_with(b"/"));
        let Some(name) = name else {
            return Err(Error::new(format!("\"{}\" is not a file name", file.display()), "name a file"));
        };
        Ok(Folder { path: file.into(), directory: output_directory::of(file).into(), name: name.into() })
    }

    pub fn open(&self) -> Result<OwnedFd> {
        output_directory::open(&self.directory)
    }

    /// Returns the error that this file cannot be written, with a hint.
    pub fn not_writable(&self, error: &std::io::Error) -> Error {
        let directory = self.directory.display();
        let hint = match error.kind() {
            // procfs has the directory, and no file can be created there.
            ErrorKind::NotFound if self.open().is_ok() => OTHER_DIRECTORY.into(),
            ErrorKind::NotFound => format!("create the directory: mkdir -p \"{directory}\""),
            // Root may write to each directory, except in file systems that permit no new files, for example sysfs.
            ErrorKind::PermissionDenied if is_root() => OTHER_DIRECTORY.into(),
            ErrorKind::PermissionDenied => format!("let this user write to the directory \"{directory}\""),
            ErrorKind::StorageFull => format!("free space in the file system of \"{directory}\""),
            _ if error.raw_os_error() == Some(libc::EMFILE) => "raise the limit of open files: ulimit -n".into(),
            _ => output_directory::hint(error).unwrap_or(OTHER_DIRECTORY).into(),
        };
        Error::new(self.failed(error), hint)
    }

    /// Returns the text that this file could not be written.
    pub fn failed(&self, error: &std::io::Error) -> String {
        format!("could not write \"{}\": {}", self.path.display(), reason(error))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_a_name_and_a_directory() {
        for path in ["", "/", "..", "a/..", "a/"] {
            assert!(Folder::of(Path::new(path)).is_err(), "{path}");
        }
        assert!(Folder::of(Path::new("file")).is_ok());
        let folder = Folder::of(Path::new("/no/such/directory/file")).unwrap();
        let error = folder.not_writable(&folder.open().unwrap_err());
        assert_eq!(error.what, "could not write \"/no/such/directory/file\": No such file or directory");
        assert_eq!(error.hint, "create the directory: mkdir -p \"/no/such/directory\"");
    }
}
