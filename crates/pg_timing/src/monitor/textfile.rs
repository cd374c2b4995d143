//! The file for the textfile collector of node_exporter.
//!
//! Each page is written to a new file, which then replaces the old one, so that a reader never sees a part of a page. The name
//! of the new file does not end in `.prom`, so node_exporter ignores it.
//!
//! The file is removed when the monitor stops, unless it runs with `--samples`. Otherwise node_exporter would go on to show its
//! last figures as if they were new. If the monitor is killed, the file remains, and
//! `pg_timing_monitor_last_sample_timestamp_seconds` shows its age.

use super::folder::{FILE_MODE, Folder, Identity, identity, identity_of};
use crate::error::Error;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Result, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The end of a name that node_exporter reads.
const END: &str = ".prom";

/// A file for node_exporter.
pub struct Textfile {
    folder: Folder,
    /// the file that was written last
    last: Option<Identity>,
}

impl Textfile {
    /// Checks that the file can be written. It also removes files that a killed monitor has left.
    pub fn open(path: &Path) -> std::result::Result<Textfile, Error> {
        if !path.as_os_str().as_encoded_bytes().ends_with(END.as_bytes()) {
            let what = format!("\"{}\" does not end in {END}, so node_exporter would ignore it", path.display());
            return Err(Error::new(what, "name the file like pg_timing.prom"));
        }
        let textfile = Textfile { folder: Folder::of(path)?, last: None };
        textfile.check().map_err(|error| textfile.folder.not_writable(&error))?;
        Ok(textfile)
    }

    fn check(&self) -> Result<()> {
        let open = self.folder.open()?;
        if let Ok(state) = rustix::fs::statat(&open, &self.folder.name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(state.st_mode) == FileType::Directory
        {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        self.remove_old_partial_files(&open);
        let (partial, _file) = self.create_partial(&open)?;
        rustix::fs::unlinkat(&open, &partial, AtFlags::empty())?;
        Ok(())
    }

    /// Replaces the file. If it returns an error, the old file is still there.
    pub fn write(&mut self, page: &str) -> std::result::Result<(), String> {
        self.last = Some(self.replace(page).map_err(|error| self.folder.failed(&error))?);
        Ok(())
    }

    fn replace(&self, page: &str) -> Result<Identity> {
        let open = self.folder.open()?;
        let (partial, mut file) = self.create_partial(&open)?;
        let written = file.write_all(page.as_bytes()).and_then(|()| {
            let identity = identity_of(&file)?;
            rustix::fs::renameat(&open, &partial, &open, &self.folder.name)?;
            Ok(identity)
        });
        written.inspect_err(|_| _ = rustix::fs::unlinkat(&open, &partial, AtFlags::empty()))
    }

    /// Removes the file, unless another program has replaced it.
    pub fn remove(&mut self) {
        let Ok(open) = self.folder.open() else { return };
        let state = rustix::fs::statat(&open, &self.folder.name, AtFlags::SYMLINK_NOFOLLOW);
        if state.is_ok_and(|state| Some(identity(&state)) == self.last) {
            _ = rustix::fs::unlinkat(&open, &self.folder.name, AtFlags::empty());
        }
    }

    /// Creates a partial file, and locks it while it is open: another monitor does not remove it then.
    fn create_partial(&self, open: &OwnedFd) -> Result<(String, File)> {
        loop {
            let partial = self.partial_name();
            let file = create(open, &partial)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Another monitor has locked the file before, and removes it.
                Err(Errno::WOULDBLOCK) => continue,
                Ok(()) if rustix::fs::fstat(&file)?.st_nlink == 0 => continue,
                // In a file system without locks, no other monitor can lock the file and remove it.
                _ => return Ok((partial, file)),
            }
        }
    }

    /// Returns a random name, so that no other user and no other monitor creates the same file.
    fn partial_name(&self) -> String {
        // The hasher of the standard library has a random seed.
        format!("{}{:016x}.tmp", self.partial_start(), RandomState::new().build_hasher().finish())
    }

    fn partial_start(&self) -> String {
        format!(".{}.", self.folder.name.to_string_lossy())
    }

    fn remove_old_partial_files(&self, open: &OwnedFd) {
        let Ok(directory) = rustix::fs::openat(open, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
            return;
        };
        let start = self.partial_start();
        for entry in Dir::new(directory).into_iter().flatten().flatten() {
            let middle =
                entry.file_name().to_str().ok().and_then(|name| name.strip_prefix(&start)?.strip_suffix(".tmp"));
            if middle.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit())) {
                _ = remove_unlocked(open, entry.file_name());
            }
        }
    }
}

/// Removes a file, unless a running monitor has locked it.
fn remove_unlocked(open: &OwnedFd, name: &CStr) -> Result<()> {
    // A named pipe must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(open, name, flags, Mode::empty())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(rustix::fs::unlinkat(open, name, AtFlags::empty())?)
}

/// Creates a new file that all users can read.
fn create(open: &OwnedFd, name: &str) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(open, name, flags, FILE_MODE)?;
    // The umask may have removed permissions.
    rustix::fs::fchmod(&file, FILE_MODE)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::super::limited::in_process_with_file_limit;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_file_is_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pg_timing.prom");
        let mut textfile = Textfile::open(&path).unwrap();
        assert_eq!(names(dir.path()), [""; 0]);
        for page in ["a 1\n", "a 2\n"] {
            textfile.write(page).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o644);
            assert_eq!(names(dir.path()), ["pg_timing.prom"]);
        }
        textfile.remove();
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn the_file_of_another_monitor_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.prom");
        let (mut first, mut second) = (Textfile::open(&path).unwrap(), Textfile::open(&path).unwrap());
        first.write("1\n").unwrap();
        second.write("2\n").unwrap();
        first.remove();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n");
    }

    #[test]
    fn monitors_in_one_directory_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let page = "a 1\n".repeat(1000);
        std::thread::scope(|threads| {
            let writers = ["a.prom", "b.prom"].map(|name| {
                let (mut textfile, page) = (Textfile::open(&path(name)).unwrap(), &page);
                threads.spawn(move || (0..500).try_for_each(|_| textfile.write(page)))
            });
            // Other monitors start meanwhile, also one with the same file.
            while !writers.iter().all(|writer| writer.is_finished()) {
                for name in ["a.prom", "b.prom", "c.prom"] {
                    Textfile::open(&path(name)).unwrap();
                }
            }
            for writer in writers {
                assert_eq!(writer.join().unwrap(), Ok(()));
            }
        });
        for name in ["a.prom", "b.prom"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), page);
        }
        assert_eq!(names(dir.path()), ["a.prom", "b.prom"]);
    }

    #[test]
    fn a_symlink_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("a.prom"), dir.path().join("victim"));
        std::fs::write(&victim, "secret").unwrap();
        symlink(&victim, &path).unwrap();
        Textfile::open(&path).unwrap().write("a 1\n").unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "secret");
        assert!(path.symlink_metadata().unwrap().is_file());
        let open = Folder::of(&path).unwrap().open().unwrap();
        symlink(&victim, dir.path().join("new")).unwrap();
        assert!(create(&open, "new").is_err());
    }

    #[test]
    fn partial_files_of_a_killed_monitor_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let others = [".a.prom.0123.tmp", ".a.prom.0123456789abcdeg.tmp", ".b.prom.0123456789abcdef.tmp", "a.prom.tmp"];
        for name in others.iter().chain(&[".a.prom.0123456789abcdef.tmp"]) {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        Textfile::open(&dir.path().join("a.prom")).unwrap();
        let mut expected = others.map(String::from);
        expected.sort();
        assert_eq!(names(dir.path()), expected);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("directory.prom")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        for (name, what, hint) in [
            ("a.txt", "does not end in .prom, so node_exporter would ignore it", "name the file like pg_timing.prom"),
            ("missing/a.prom", "No such file or directory", "create the directory: mkdir -p"),
            ("file/a.prom", "Not a directory", "name a file in another directory"),
            ("directory.prom", "is a directory", "name a file in another directory"),
        ] {
            let error = Textfile::open(&dir.path().join(name)).err().unwrap_or_else(|| panic!("{name}"));
            assert!(error.what.ends_with(what), "{error}");
            assert!(error.hint.starts_with(hint), "{}", error.hint);
        }
        // Not even root can create files in sysfs and procfs.
        #[cfg(target_os = "linux")]
        for path in ["/sys/a.prom", "/proc/a.prom"] {
            let hint = Textfile::open(Path::new(path)).err().unwrap().hint;
            let is_permission = hint == "let this user write to the directory \"/sys\"";
            assert!(hint == "name a file in another directory" || is_permission, "{path}: {hint}");
        }
    }

    #[test]
    fn a_directory_may_vanish_and_return() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a.prom");
        let mut textfile = Textfile::open(&path).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let error = textfile.write("a 1\n").unwrap_err();
        assert_eq!(error, format!("could not write \"{}\": No such file or directory", path.display()));
        textfile.remove();
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        in_process_with_file_limit("monitor::textfile::tests::a_failed_write_leaves_the_old_file", 100, || {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.prom");
            let mut textfile = Textfile::open(&path).unwrap();
            textfile.write("old\n").unwrap();
            let error = textfile.write(&"new\n".repeat(50)).unwrap_err();
            assert!(error.contains("File too large"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\n");
            assert_eq!(names(dir.path()), ["a.prom"]);
            textfile.remove();
            assert_eq!(names(dir.path()), [""; 0]);
        });
    }
}
