//! Writes a file completely or not at all, safely even if another user can write to its directory.
//!
//! The directory is opened once. All later steps use it and names without a slash. The text goes into a new file with a random
//! name, which is then renamed.

use crate::error;
use crate::output_directory;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Error, Result, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The rights of a new file. The process's umask takes some away.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

const HINT: &str = "give the name of a new file, or of a regular file to replace; without -o the output goes to stdout";

/// The place of a file: an open directory, and a name in it.
pub struct OutputFile {
    directory: OwnedFd,
    name: OsString,
    /// only for messages
    path: PathBuf,
}

impl OutputFile {
    /// Returns an error if the file cannot be written: the directory must be writable, and an existing file must be a regular
    /// one. A symlink could lead to any file, and the rename of a device would remove it.
    pub fn open(path: &Path) -> std::result::Result<OutputFile, error::Error> {
        let failed = |error: Error| not_written(path, &error);
        let refused = |why: &str| failed(Error::other(why));
        let is_directory_name = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let name = path.file_name().filter(|_| !is_directory_name).ok_or_else(|| refused("it is not a file name"))?;
        let directory = output_directory::open(output_directory::of(path)).map_err(failed)?;
        match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => is_regular(&found).map_err(refused)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let output = OutputFile { directory, name: name.into(), path: path.into() };
        output.create().map(|(_, name)| output.remove(&name)).map_err(failed)?;
        Ok(output)
    }

    /// Writes the file. If that fails, an existing file stays as it is.
    pub fn write(&self, bytes: &[u8]) -> std::result::Result<(), error::Error> {
        self.written(bytes).map_err(|error| not_written(&self.path, &error))
    }

    fn written(&self, bytes: &[u8]) -> Result<()> {
        let (mut file, new_name) = self.create()?;
        // A file that only its owner may read stays so.
        if let Ok(old) = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            && let Err(error) = rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o777))
        {
            self.remove(&new_name);
            return Err(error.into());
        }
        // Some file systems notice only here that they are full.
        let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| {
            let renamed = rustix::fs::renameat(&self.directory, &new_name, &self.directory, &self.name);
            Ok(renamed?)
        });
        if let Err(error) = written {
            self.remove(&new_name);
            return Err(error);
        }
        let found = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let own = rustix::fs::fstat(&file)?;
        match (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino) {
            true => Ok(()),
            false => Err(Error::other("another user has replaced the new file")),
        }
    }

    /// Creates a file with a random name, so that no other user can create it first.
    fn create(&self) -> Result<(File, String)> {
        // The hasher of the standard library has a random seed.
        let name = format!(".pg_timing.{:016x}", RandomState::new().build_hasher().finish());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &name, flags, NEW_FILE)?;
        Ok((file.into(), name))
    }

    fn remove(&self, name: &str) {
        _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }
}

fn not_written(path: &Path, error: &Error) -> error::Error {
    let what = format!("could not write \"{}\": {}", path.display(), crate::human::reason(error));
    error::Error::new(what, output_directory::hint(error).unwrap_or(HINT))
}

fn is_regular(found: &Stat) -> std::result::Result<(), &'static str> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err("it is a directory"),
        FileType::Symlink => Err("it is a symbolic link"),
        _ => Err("it is not a regular file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_and_an_existing_file_get_the_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        for text in ["long text", "new"] {
            let output = OutputFile::open(&path).unwrap();
            output.write(text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(dir.path()), ["page.html"]);
    }

    #[test]
    fn an_existing_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        OutputFile::open(&path).unwrap().write(b"new").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("directory")).unwrap();
        std::fs::write(path("victim"), "secret").unwrap();
        symlink(path("victim"), path("link")).unwrap();
        for (path, why) in [
            (path("directory"), "it is a directory"),
            (path("link"), "it is a symbolic link"),
            ("/dev/null".into(), "it is not a regular file"),
            (path("new/"), "it is not a file name"),
            (path(".."), "it is not a file name"),
            (path("missing/page.html"), "No such file or directory"),
            (path("victim/page.html"), "Not a directory"),
            (path(&"x".repeat(256)), "File name too long"),
        ] {
            let error = OutputFile::open(&path).err().unwrap_or_else(|| panic!("{}", path.display()));
            assert!(format!("{error:#}").ends_with(why), "{error:#}");
        }
        assert_eq!(names(dir.path()), ["directory", "link", "victim"]);
    }

    /// Another user creates a symlink after the check. It is replaced, and not followed.
    #[test]
    fn a_symlink_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("victim"), "secret").unwrap();
        let output = OutputFile::open(&path("page.html")).unwrap();
        symlink(path("victim"), path("page.html")).unwrap();
        output.write(b"page").unwrap();
        assert_eq!(std::fs::read_to_string(path("victim")).unwrap(), "secret");
        assert_eq!(std::fs::read_to_string(path("page.html")).unwrap(), "page");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        let output = OutputFile::open(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(output.write(b"page").is_err(), "a directory took the name");
        assert_eq!(names(dir.path()), ["page.html"]);
    }
}
