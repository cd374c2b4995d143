//! Files that a user named as outputs. A file is written completely or not at all: the bytes go into a new file with a random
//! name, which then replaces the old one.
//!
//! Root writes only to a directory that only root can change, and whose path only root can change. For this, root follows
//! symlinks by itself, and checks each directory on the path. So no other user can change the path between the check and the write.

use crate::error::Error;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of files that programs of other users read.
pub const READABLE: u32 = 0o644;
/// The mode of a new document. The process's umask removes some permissions.
const DOCUMENT: u32 = 0o666;

const OTHER_DIRECTORY: &str = "name a file in another directory";
const OTHER_FILE: &str = "give the name of a new file, or of a regular file to replace";
const ONLY_ROOT: &str = "use a directory that only root can change, such as /root";

/// A file. Its directory is checked again for each write, because someone may create it anew.
pub struct OutputFile(PathBuf);

impl OutputFile {
    /// Returns the place of a file that [`replace`](OutputFile::replace) can write: an existing file must be a regular one,
    /// because the rename of a device would remove it.
    pub fn to_replace(path: &Path) -> std::result::Result<OutputFile, Error> {
        OutputFile::checked(path, |output| {
            let place = output.place()?;
            match place.symlink_metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                found => check_regular(&found?)?,
            }
            std::fs::remove_file(create_partial(&place, DOCUMENT)?.0)
        })
    }

    /// Returns a file to which [`append`](OutputFile::append) can write. Creates it if it is missing.
    pub fn to_append(path: &Path) -> std::result::Result<OutputFile, Error> {
        OutputFile::checked(path, |output| output.open_to_append().map(|_| ()))
    }

    fn checked(path: &Path, check: fn(&OutputFile) -> Result<()>) -> std::result::Result<OutputFile, Error> {
        let output = OutputFile(path.into());
        check(&output).map_err(|error| output.not_writable(&error))?;
        Ok(output)
    }

    /// Returns the path of the file in its checked directory.
    fn place(&self) -> Result<PathBuf> {
        let is_directory_name = self.0.as_os_str().as_encoded_bytes().ends_with(b"/");
        let name = self.0.file_name().filter(|_| !is_directory_name);
        let name = name.ok_or_else(|| refused("it is not a file name", OTHER_FILE))?;
        Ok(safe_directory(directory_of(&self.0))?.join(name))
    }

    /// Replaces the file. `mode` is that of the new file, also against the umask. Without it, the file keeps the permissions of the
    /// one that it replaces, and is on the disk at the end. After an error, the old file is as before.
    pub fn replace(&self, bytes: &[u8], mode: Option<u32>) -> std::result::Result<(), Error> {
        let write = |place: PathBuf| {
            // A file that only its owner may read stays so. The mode of a symlink means nothing.
            let old = place.symlink_metadata().ok().filter(|old| check_regular(old).is_ok());
            let known = mode.or(old.map(|old| old.mode() & 0o777));
            let (partial, mut file) = create_partial(&place, known.unwrap_or(DOCUMENT))?;
            let mut write = || {
                if let Some(known) = known {
                    // The umask may have removed permissions.
                    file.set_permissions(Permissions::from_mode(known))?;
                }
                file.write_all(bytes)?;
                if mode.is_none() {
                    // Some file systems notice only here that they are full.
                    file.sync_all()?;
                }
                std::fs::rename(&partial, &place)
            };
            write().inspect_err(|_| _ = std::fs::remove_file(&partial))
        };
        self.place().and_then(write).map_err(|error| self.not_writable(&error))
    }

    /// Removes the file, if that is possible.
    pub fn remove(&self) {
        _ = self.place().and_then(std::fs::remove_file);
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
        let place = self.place()?;
        let mut options = OpenOptions::new();
        // A named pipe must not block.
        let flags = if is_root() { libc::O_NONBLOCK | libc::O_NOFOLLOW } else { libc::O_NONBLOCK };
        options.read(true).append(true).mode(READABLE).custom_flags(flags);
        let file = match options.open(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let file = options.create_new(true).open(&place)?;
                // The umask may have removed permissions.
                file.set_permissions(Permissions::from_mode(READABLE))?;
                file
            }
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(std::io::Error::other("it is a symlink, which root does not follow"));
            }
            opened => opened?,
        };
        check_regular(&file.metadata()?)?;
        Ok(file)
    }

    /// Returns the error that this file cannot be written, with a hint.
    fn not_writable(&self, error: &std::io::Error) -> Error {
        let directory = directory_of(&self.0);
        let hint = match error.kind() {
            // procfs has the directory, and no file can be created there.
            ErrorKind::NotFound if !directory.is_dir() => {
                format!("create the directory: mkdir -p \"{}\"", directory.display())
            }
            // Root may write to each directory, except in file systems that permit no new files, for example sysfs.
            ErrorKind::PermissionDenied if !is_root() => {
                format!("let this user write to the directory \"{}\"", directory.display())
            }
            ErrorKind::StorageFull => format!("free space in the file system of \"{}\"", directory.display()),
            _ => hint(error).unwrap_or(OTHER_DIRECTORY).into(),
        };
        Error::io(format!("could not write \"{}\"", self.0.display()), error, hint)
    }
}

/// Returns an error if it is not a regular file.
fn check_regular(found: &Metadata) -> Result<()> {
    match found.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(refused("it is a directory", OTHER_FILE)),
        kind if kind.is_symlink() => Err(refused("it is a symbolic link", OTHER_FILE)),
        _ => Err(refused("it is not a regular file", OTHER_FILE)),
    }
}

/// Creates a file with a random name beside this one, so that no other user and no other process creates the same one.
fn create_partial(place: &Path, mode: u32) -> Result<(PathBuf, File)> {
    // The hasher of the standard library has a random seed.
    let partial = place.with_file_name(format!(".pg_timing.{:016x}.tmp", RandomState::new().build_hasher().finish()));
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial)?;
    Ok((partial, file))
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the directory of an output.
pub fn directory_of(output: &Path) -> &Path {
    output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the hint of an error of this module, if it has its own.
pub fn hint(error: &std::io::Error) -> Option<&str> {
    error.get_ref()?.downcast_ref().map(|Error { hint, .. }| hint.as_str())
}

/// Returns the path of the directory. As root, it has no symlinks, and it is an error with a hint if another user can change the
/// directory or the way to it.
pub fn safe_directory(directory: &Path) -> Result<PathBuf> {
    if !is_root() {
        return Ok(directory.into());
    }
    // Symlinks that lead to each other are an error here.
    directory.canonicalize()?;
    let mut path = PathBuf::new();
    let mut is_shared = false;
    // The remaining parts, last first. The first part is the root directory or the working directory.
    let mut parts = reversed(&Path::new(".").join(directory));
    while let Some(part) = parts.pop() {
        let next = path.join(&part);
        let state = next.symlink_metadata()?;
        let refuse = |verb: &str, why: &str| {
            Err(refused(format!("root does not {verb} \"{}\", because {why}", next.display()), ONLY_ROOT))
        };
        if state.is_symlink() {
            // Another user can replace the symlink, or move one of root to its place.
            match state.uid() {
                _ if is_shared => return refuse("follow the symlink", "other users can write to its directory"),
                0 => parts.extend(reversed(&next.read_link()?)),
                owner => return refuse("follow the symlink", &format!("it belongs to user {owner}")),
            }
            continue;
        }
        if state.uid() != 0 {
            return refuse("write below", &format!("this directory belongs to user {}", state.uid()));
        }
        // The group's permission counts, too: it can stand for the ACL of another user.
        is_shared = state.mode() & 0o022 != 0;
        // In a sticky directory such as /tmp, other users cannot rename a directory of root.
        let is_sticky = state.mode() & 0o1000 != 0;
        if is_shared && (!is_sticky || parts.is_empty()) {
            return refuse("write below", "other users can write to this directory");
        }
        path = next;
    }
    Ok(path)
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
    use std::os::unix::fs::symlink;

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
