//! Writes a new directory tree, safely even if another user owns a part of the path and replaces it meanwhile.
//!
//! For this, the path is resolved only once. All later steps use open directories and names without a slash.

use super::files::{Files, open};
use crate::{error, output_file};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{Error, Result};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const HINT: &str = "give the name of a new directory on a local file system, in a directory where you may write";

/// The place of a new tree: an open directory, and a name in it.
pub struct Target {
    parent: OwnedFd,
    name: OsString,
    /// only for messages
    path: PathBuf,
}

impl Target {
    /// Returns an error if no tree can be written to `dir`. Neither `dir` nor a symlink with its name may exist, and
    /// the parent directory must be writable.
    pub fn open(dir: &Path) -> std::result::Result<Target, error::Error> {
        let refused = |why: &str| error::Error::new(format!("\"{}\" {why}", dir.display()), HINT);
        let name = dir.file_name().ok_or_else(|| refused("is not a directory name"))?;
        let parent =
            output_file::open_directory(output_file::directory_of(dir)).map_err(|e| failed("create", dir, e))?;
        let target = Target { parent, name: name.into(), path: dir.into() };
        match rustix::fs::statat(&target.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Err(refused("exists")),
            Err(Errno::NOENT) => {}
            // A name can be too long.
            Err(error) => return Err(failed("create", dir, error)),
        }
        let partial = Partial::create(&target.parent).map_err(|e| failed("create", dir, e))?;
        partial.remove();
        Ok(target)
    }

    /// Writes the tree. It appears complete or not at all: it is written next to the target and then renamed.
    pub fn write(&self, files: &Files) -> std::result::Result<(), error::Error> {
        let partial = Partial::create(&self.parent).map_err(|e| failed("create", &self.path, e))?;
        let written = files.write(&partial.root).and_then(|()| self.rename(&partial));
        written.map_err(|e| {
            files.remove(&partial.root);
            partial.remove();
            failed("write", &self.path, e)
        })
    }

    fn rename(&self, partial: &Partial) -> Result<()> {
        rename_to_new(&self.parent, &partial.name, &self.name)?;
        match is_same(&open(&self.parent, &self.name)?, &partial.root)? {
            true => Ok(()),
            false => Err(replaced()),
        }
    }
}

/// Returns the error that this program could not create or write a directory.
fn failed(verb: &str, dir: &Path, error: impl Into<Error>) -> error::Error {
    let error = error.into();
    let what = format!("could not {verb} \"{}\": {}", dir.display(), crate::human::reason(&error));
    error::Error::new(what, output_file::hint(&error).unwrap_or(HINT))
}

fn replaced() -> Error {
    Error::other("another user has replaced the new directory")
}

/// A directory that only its owner can access, until it gets its final name.
struct Partial<'a> {
    parent: &'a OwnedFd,
    name: String,
    root: OwnedFd,
}

impl Partial<'_> {
    /// Creates the directory. Its name is random, so that no other user can create it first.
    fn create(parent: &OwnedFd) -> Result<Partial<'_>> {
        let name = output_file::random_name();
        rustix::fs::mkdirat(parent, &name, Mode::RWXU)?;
        match open_new(parent, &name, rustix::process::geteuid().as_raw()) {
            Ok(root) => Ok(Partial { parent, name, root }),
            Err(error) => {
                remove_empty(parent, &name);
                Err(error)
            }
        }
    }

    fn remove(&self) {
        remove_empty(self.parent, &self.name);
    }
}

/// Removes the directory if it is empty. If another user has replaced it, nothing else is removed.
fn remove_empty(parent: &OwnedFd, name: &str) {
    _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Opens a directory that this program has just created. `own` is this program's user.
fn open_new(parent: &OwnedFd, name: &str, own: u32) -> Result<OwnedFd> {
    let root = open(parent, name)?;
    let owner = rustix::fs::fstat(&root)?.st_uid;
    if owner != own {
        return Err(Error::other(format!(
            "the new directory belongs to another user (uid {owner}): the file system changes owners, or another user replaced it"
        )));
    }
    // The new directory must be empty. Otherwise another user has given its name to an older directory of this user.
    match is_empty(&root)? {
        true => Ok(root),
        false => Err(replaced()),
    }
}

fn is_empty(directory: &OwnedFd) -> Result<bool> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        if ![&b"."[..], b".."].contains(&entry?.file_name().to_bytes()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Renames a directory. The new name must not exist.
fn rename_to_new(parent: &OwnedFd, from: &str, to: &OsString) -> Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(parent, from, parent, to, rustix::fs::RenameFlags::NOREPLACE) {
        // The kernel or the file system cannot do this.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        renamed => return Ok(renamed?),
    }
    // A rename of a directory replaces at most an empty directory.
    Ok(rustix::fs::renameat(parent, from, parent, to)?)
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> Result<bool> {
    let (one, other) = (rustix::fs::fstat(one)?, rustix::fs::fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn tree() -> Files {
        let mut files = Files::default();
        files.add("/proc/cpuinfo", "a");
        files.add("/proc/sys/kernel/osrelease", "b");
        files
    }

    fn names(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn an_existing_name_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let error = |name: &str| Target::open(&path(name)).err().unwrap_or_else(|| panic!("{name}")).to_string();
        std::fs::create_dir(path("directory")).unwrap();
        std::fs::write(path("file"), "").unwrap();
        symlink(path("missing"), path("link")).unwrap();
        for name in ["directory", "file", "link", "link/", "directory/."] {
            assert!(error(name).ends_with("exists"), "{}", error(name));
        }
        for name in ["missing/tree", "file/tree", "..", "/"] {
            error(name);
        }
        for length in [256, 5000] {
            assert!(error(&"x".repeat(length)).ends_with("File name too long"), "{length}");
        }
        Target::open(&path("tree")).unwrap();
        Target::open(&path(&"x".repeat(255))).unwrap();
        assert_eq!(names(parent.path()), 3, "a check leaves nothing");
    }

    /// Another user owns the symlink in the path, and lets it point to a directory of ours.
    #[test]
    fn the_path_is_resolved_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("shared")).unwrap();
        std::fs::create_dir(path("private")).unwrap();
        symlink("shared", path("link")).unwrap();
        let target = Target::open(&path("link/tree")).unwrap();
        std::fs::remove_file(path("link")).unwrap();
        symlink("private", path("link")).unwrap();
        target.write(&tree()).unwrap();
        assert_eq!(names(&path("private")), 0);
        assert_eq!(std::fs::read_to_string(path("shared/tree/proc/cpuinfo")).unwrap(), "a");
    }

    #[test]
    fn no_symlink_is_followed_and_no_file_is_replaced() {
        let victim = tempfile::tempdir().unwrap();
        let key = victim.path().join("cpuinfo");
        std::fs::write(&key, "secret").unwrap();
        let attacks: [fn(&Path, &Path); 3] = [
            |tree, victim| symlink(victim, tree.join("proc")).unwrap(),
            |tree, victim| {
                std::fs::create_dir(tree.join("proc")).unwrap();
                symlink(victim.join("cpuinfo"), tree.join("proc/cpuinfo")).unwrap();
            },
            |tree, victim| {
                std::fs::create_dir(tree.join("proc")).unwrap();
                std::fs::hard_link(victim.join("cpuinfo"), tree.join("proc/cpuinfo")).unwrap();
            },
        ];
        for attack in attacks {
            let parent = tempfile::tempdir().unwrap();
            let root = open(CWD, parent.path()).unwrap();
            attack(parent.path(), victim.path());
            assert!(tree().write(&root).is_err());
            tree().remove(&root);
            assert_eq!(std::fs::read_to_string(&key).unwrap(), "secret");
            assert_eq!(names(victim.path()), 1);
        }
    }

    /// Another user has moved our directory away, and given its name to a directory with files.
    #[test]
    fn a_directory_of_another_user_is_not_removed_and_not_taken_for_the_tree() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let target = Target::open(&path("tree")).unwrap();
        let partial = Partial::create(&target.parent).unwrap();
        tree().write(&partial.root).unwrap();
        std::fs::rename(path(&partial.name), path("moved")).unwrap();
        std::fs::create_dir_all(path(&partial.name).join("proc")).unwrap();
        std::fs::write(path(&partial.name).join("proc/cpuinfo"), "theirs").unwrap();
        assert!(target.rename(&partial).is_err());
        tree().remove(&partial.root);
        assert_eq!(std::fs::read_to_string(path("tree/proc/cpuinfo")).unwrap(), "theirs");
        assert_eq!(names(&path("moved")), 0, "our files are removed");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let target = Target::open(&parent.path().join("tree")).unwrap();
        std::fs::create_dir(parent.path().join("tree")).unwrap();
        assert!(target.write(&tree()).is_err(), "it exists now");
        assert_eq!(names(parent.path()), 1);
    }

    #[test]
    fn a_new_directory_of_another_owner_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("new")).unwrap();
        let open_parent = open(CWD, parent.path()).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert!(open_new(&open_parent, "new", own).is_ok());
        let error = open_new(&open_parent, "new", own + 1).unwrap_err().to_string();
        assert!(error.contains(&format!("(uid {own}): the file system changes owners")), "{error}");
        remove_empty(&open_parent, "new");
        assert_eq!(names(parent.path()), 0);
    }

    #[test]
    fn only_the_owner_can_read_the_tree() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("tree");
        Target::open(&path).unwrap().write(&tree()).unwrap();
        let mode = |name: &str| path.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(""), mode("proc"), mode("proc/cpuinfo")], [0o700, 0o700, 0o600]);
        assert_eq!(std::fs::read_to_string(path.join("proc/sys/kernel/osrelease")).unwrap(), "b");
    }
}
