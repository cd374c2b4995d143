//! Files that a user named as outputs. A file is written completely or not at all: the bytes go into a new file with a random
//! name, which then replaces the old one.
//!
//! Root writes only to a directory that nobody else can change, and cannot lead elsewhere. For this, root opens each directory
//! on the path by itself, follows symlinks by itself, and checks the open directories. So no other user can change the path
//! between the check and the write.

use crate::error::Error;
use crate::human::reason;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Result, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A directory is only searched. Linux needs no permission to read it.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = OFlags::RDONLY;

const FLAGS: OFlags = SEARCH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// As many as Linux follows.
const MAX_SYMLINKS: u32 = 40;

/// The mode of files that programs of other users read.
pub const READABLE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);
/// The mode of a new document. The process's umask removes some permissions.
const DOCUMENT: Mode = Mode::from_raw_mode(0o666);

const OTHER_DIRECTORY: &str = "name a file in another directory";
const OTHER_FILE: &str = "give the name of a new file, or of a regular file to replace";
const ONLY_ROOT: &str = "use a directory that only root can change, such as /root";

/// The device and the inode of a file.
type Identity = (u64, u64);

/// A directory, and the name of a file in it. The directory is opened again for each write, because someone may create it anew.
pub struct OutputFile {
    /// only for messages
    path: PathBuf,
    directory: PathBuf,
    name: OsString,
    /// the file that this program wrote last
    last: Cell<Option<Identity>>,
}

impl OutputFile {
    /// Returns the place of a file that [`replace`](OutputFile::replace) can write: an existing file must be a regular one,
    /// because the rename of a device would remove it.
    pub fn to_replace(path: &Path) -> std::result::Result<OutputFile, Error> {
        OutputFile::checked(path, OutputFile::check)
    }

    /// Returns a file to which [`append`](OutputFile::append) can write. Creates it if it is missing.
    pub fn to_append(path: &Path) -> std::result::Result<OutputFile, Error> {
        OutputFile::checked(path, |output| output.open_to_append().map(|_| ()))
    }

    fn checked(path: &Path, check: fn(&OutputFile) -> Result<()>) -> std::result::Result<OutputFile, Error> {
        let is_directory_name = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let name = path.file_name().filter(|_| !is_directory_name);
        let output = OutputFile {
            path: path.into(),
            directory: directory_of(path).into(),
            name: name.unwrap_or_default().into(),
            last: Cell::default(),
        };
        let checked = if name.is_some() { check(&output) } else { Err(refused("it is not a file name", OTHER_FILE)) };
        checked.map_err(|error| output.not_writable(&error))?;
        Ok(output)
    }

    fn check(&self) -> Result<()> {
        let directory = self.open_directory()?;
        match rustix::fs::statat(&directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => check_regular(&found)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let (partial, _) = create_partial(&directory, DOCUMENT)?;
        Ok(rustix::fs::unlinkat(&directory, partial, AtFlags::empty())?)
    }

    fn open_directory(&self) -> Result<OwnedFd> {
        open_directory(&self.directory)
    }

    /// Replaces the file. `mode` is that of the new file, also against the umask. Without it, the file keeps the permissions of the
    /// one that it replaces, and is on the disk at the end. After an error, the old file is as before.
    pub fn replace(&self, bytes: &[u8], mode: Option<Mode>) -> std::result::Result<(), Error> {
        let write = || {
            let directory = self.open_directory()?;
            // A file that only its owner may read stays so. The mode of a symlink means nothing.
            let old = rustix::fs::statat(&directory, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok();
            let old = old.filter(|old| check_regular(old).is_ok());
            let known = mode.or(old.map(|old| Mode::from_raw_mode(old.st_mode & 0o777)));
            let (partial, mut file) = create_partial(&directory, known.unwrap_or(DOCUMENT))?;
            let mut write = || {
                if let Some(known) = known {
                    // The umask may have removed permissions.
                    rustix::fs::fchmod(&file, known)?;
                }
                file.write_all(bytes)?;
                if mode.is_none() {
                    // Some file systems notice only here that they are full.
                    file.sync_all()?;
                }
                rustix::fs::renameat(&directory, &partial, &directory, &self.name)?;
                self.last.set(Some(identity(&rustix::fs::fstat(&file)?)));
                Ok(())
            };
            write().inspect_err(|_| _ = rustix::fs::unlinkat(&directory, &partial, AtFlags::empty()))
        };
        write().map_err(|error| self.not_writable(&error))
    }

    /// Removes the file that was written last, if that is possible, and unless another process has replaced it since.
    pub fn remove(&self) {
        let Ok(directory) = self.open_directory() else { return };
        let found = rustix::fs::statat(&directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| self.last.get() == Some(identity(&found))) {
            _ = rustix::fs::unlinkat(&directory, &self.name, AtFlags::empty());
        }
    }

    /// Appends a whole line, or nothing.
    ///
    /// The file is opened for each line, because logrotate moves it or cuts it. It is opened for appending, so `copytruncate`
    /// works.
    pub fn append(&self, line: &[u8]) -> std::result::Result<(), Error> {
        let write = |mut file: File| {
            let before = file.metadata()?.len();
            // The last line has no end if the machine stopped during a write.
            let mut last = *b"\n";
            if let Some(at) = before.checked_sub(1) {
                file.read_exact_at(&mut last, at)?;
            }
            let end: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
            file.write_all(&[end, line].concat()).inspect_err(|_| _ = file.set_len(before))
        };
        self.open_to_append().and_then(write).map_err(|error| self.not_writable(&error))
    }

    fn open_to_append(&self) -> Result<File> {
        let open = self.open_directory()?;
        // A named pipe must not block.
        let mut flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if is_root() {
            flags |= OFlags::NOFOLLOW;
        }
        let file = match rustix::fs::openat(&open, &self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                let file = rustix::fs::openat(&open, &self.name, flags | OFlags::CREATE | OFlags::EXCL, READABLE)?;
                // The umask may have removed permissions.
                rustix::fs::fchmod(&file, READABLE)?;
                file
            }
            Err(Errno::LOOP) => return Err(std::io::Error::other("it is a symlink, which root does not follow")),
            opened => opened?,
        };
        let state = rustix::fs::fstat(&file)?;
        check_regular(&state)?;
        // Another user can give a second name to a file of root.
        if is_root() && state.st_nlink > 1 {
            return Err(std::io::Error::other("it has several hard links, and root writes only to a file with one"));
        }
        Ok(file.into())
    }

    /// Returns the error that this file cannot be written, with a hint.
    fn not_writable(&self, error: &std::io::Error) -> Error {
        let directory = self.directory.display();
        let hint = match error.kind() {
            // procfs has the directory, and no file can be created there.
            ErrorKind::NotFound if self.open_directory().is_err() => {
                format!("create the directory: mkdir -p \"{directory}\"")
            }
            // Root may write to each directory, except in file systems that permit no new files, for example sysfs.
            ErrorKind::PermissionDenied if !is_root() => {
                format!("let this user write to the directory \"{directory}\"")
            }
            ErrorKind::StorageFull => format!("free space in the file system of \"{directory}\""),
            _ => hint(error).unwrap_or(OTHER_DIRECTORY).into(),
        };
        Error::new(format!("could not write \"{}\": {}", self.path.display(), reason(error)), hint)
    }
}

fn identity(state: &Stat) -> Identity {
    // The types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    (state.st_dev as u64, state.st_ino as u64)
}

/// Returns an error if it is not a regular file.
fn check_regular(found: &Stat) -> Result<()> {
    let why = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "it is a directory",
        FileType::Symlink => "it is a symbolic link",
        _ => "it is not a regular file",
    };
    Err(refused(why, OTHER_FILE))
}

/// Creates a file with a random name, so that no other user and no other process creates the same one.
fn create_partial(directory: &OwnedFd, mode: Mode) -> Result<(String, File)> {
    // The hasher of the standard library has a random seed.
    let name = format!(".pg_timing.{:016x}.tmp", RandomState::new().build_hasher().finish());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, &name, flags, mode)?;
    Ok((name, file.into()))
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the directory of an output.
pub fn directory_of(output: &Path) -> &Path {
    output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens the directory. As root, returns an error with a hint if another user can change the directory or the way to it.
pub fn open_directory(directory: &Path) -> Result<OwnedFd> {
    match is_root() {
        true => open_as_root(directory),
        false => Ok(rustix::fs::openat(CWD, directory, FLAGS, Mode::empty())?),
    }
}

/// Returns the hint of an error of this module, if it has its own.
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
            check_symlink(&path.join(&part), owner, is_shared)?;
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
        let refused =
            |why: &str| refused(format!("root does not write below \"{}\", because {why}", path.display()), ONLY_ROOT);
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

/// Returns an error if another user can replace the symlink, or can move one of root to its place.
fn check_symlink(path: &Path, owner: u32, is_shared: bool) -> Result<()> {
    let why = match owner {
        _ if is_shared => "other users can write to its directory".into(),
        0 => return Ok(()),
        owner => format!("it belongs to user {owner}"),
    };
    Err(refused(format!("root does not follow the symlink \"{}\", because {why}", path.display()), ONLY_ROOT))
}

fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().into()).collect()
}

fn refused(what: impl Into<String>, hint: &str) -> std::io::Error {
    std::io::Error::other(Error::new(what, hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        let output = OutputFile::to_replace(&path).unwrap();
        assert_eq!(names(dir.path()), [""; 0], "a check leaves nothing");
        for (text, permissions) in [("long text", 0o640), ("new", 0o600)] {
            output.replace(text.as_bytes(), None).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(permissions)).unwrap();
            output.replace(b"same permissions", None).unwrap();
            assert_eq!(mode(&path), permissions);
        }
        output.replace(b"for all users", Some(READABLE)).unwrap();
        assert_eq!(mode(&path), 0o644);
        assert_eq!(names(dir.path()), ["page.html"]);
        output.remove();
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn what_cannot_be_replaced_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("directory")).unwrap();
        std::fs::write(path("victim"), "secret").unwrap();
        symlink(path("victim"), path("link")).unwrap();
        for (path, why, hint) in [
            (path("directory"), "it is a directory", "give the name of a new file"),
            (path("link"), "it is a symbolic link", "give the name of a new file"),
            ("/dev/null".into(), "it is not a regular file", "give the name of a new file"),
            (path("new/"), "it is not a file name", "give the name of a new file"),
            (path(".."), "it is not a file name", "give the name of a new file"),
            ("".into(), "it is not a file name", "give the name of a new file"),
            (path("missing/page"), "No such file or directory", "create the directory: mkdir -p \""),
            (path("victim/page"), "Not a directory", OTHER_DIRECTORY),
            (path(&"x".repeat(256)), "File name too long", OTHER_DIRECTORY),
        ] {
            let error = OutputFile::to_replace(&path).err().unwrap_or_else(|| panic!("{}", path.display()));
            assert!(error.what.ends_with(why) && error.hint.starts_with(hint), "{error}; {}", error.hint);
        }
        assert_eq!(names(dir.path()), ["directory", "link", "victim"]);
        // Not even root can create files in sysfs and procfs.
        #[cfg(target_os = "linux")]
        for path in ["/sys/a", "/proc/a"] {
            let hint = OutputFile::to_replace(Path::new(path)).err().unwrap().hint;
            let is_permission = hint == "let this user write to the directory \"/sys\"";
            assert!(hint == OTHER_DIRECTORY || is_permission, "{path}: {hint}");
        }
    }

    /// Another user creates a symlink after the check. It is replaced, and not followed.
    #[test]
    fn a_symlink_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("victim"), "secret").unwrap();
        let output = OutputFile::to_replace(&path("page")).unwrap();
        for readable in [None, Some(READABLE)] {
            symlink(path("victim"), path("page")).unwrap();
            assert!(output.replace(b"page", readable).is_ok());
            assert_eq!(std::fs::read_to_string(path("victim")).unwrap(), "secret");
            assert_eq!(std::fs::read_to_string(path("page")).unwrap(), "page");
            assert_eq!(mode(&path("page")) & 0o111, 0, "the mode of a symlink means nothing");
            std::fs::remove_file(path("page")).unwrap();
        }
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page");
        let output = OutputFile::to_replace(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(output.replace(b"page", None).is_err());
        assert_eq!(names(dir.path()), ["page"]);
    }
}
