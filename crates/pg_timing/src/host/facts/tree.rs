//! Captured trees: opens their files, and writes a new one, safely even if another user changes the tree or its path meanwhile.
//!
//! A path is resolved only once. All later steps use open directories and names without a slash.

use crate::{error, output_file};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The flags for reading. With NONBLOCK, a named pipe does not block.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens a regular file of the tree in `root`, given its absolute path on the machine. Symlinks are resolved in the
/// tree. Without openat2 an absolute symlink is refused.
pub fn open_file(root: &Path, path: &str) -> Result<File> {
    let path = path.trim_start_matches('/');
    let file: File = match open_in_root(root, path)? {
        Some(file) => file,
        None => open_by_steps(root, path)?,
    }
    .into();
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Lets the kernel resolve the path as if `root` were the root directory. Returns `None` if it cannot do that.
#[cfg(target_os = "linux")]
fn open_in_root(root: &Path, path: &str) -> Result<Option<OwnedFd>> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    /// If any file is renamed while the kernel resolves "..", it returns EAGAIN, and the call must be repeated.
    const TRIES: u32 = 100;
    let root = rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        opened = openat2(&root, path, READ, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    match opened {
        // Linux has it since 5.6. Some containers answer EPERM to calls that they do not know.
        Err(Errno::NOSYS | Errno::PERM) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_in_root(_: &Path, _: &str) -> Result<Option<OwnedFd>> {
    Ok(None)
}

/// Resolves the path, and then opens each of its parts without following symlinks: a resolved path has none.
fn open_by_steps(root: &Path, path: &str) -> Result<OwnedFd> {
    let (root, file) = (root.canonicalize()?, root.join(path).canonicalize()?);
    let Ok(parts) = file.strip_prefix(&root) else {
        return Err(Error::new(ErrorKind::InvalidInput, "outside of the captured tree"));
    };
    let root = rustix::fs::openat(CWD, &root, READ | OFlags::DIRECTORY, Mode::empty())?;
    parts
        .iter()
        .try_fold(root, |parent, part| Ok(rustix::fs::openat(&parent, part, READ | OFlags::NOFOLLOW, Mode::empty())?))
}

/// The files of a tree: absolute path on the machine, and contents.
#[derive(Default)]
pub struct Files(Vec<(String, String)>);

impl Files {
    pub fn add(&mut self, path: &str, text: impl Into<String>) {
        self.0.push((path.into(), text.into()));
    }

    /// Writes new files into a directory of ours. Symlinks are not followed.
    pub fn write(&self, root: &OwnedFd) -> Result<()> {
        for (path, text) in &self.0 {
            let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            let Some(name) = parts.pop() else { continue };
            let mut parent = root.try_clone()?;
            for part in parts {
                match rustix::fs::mkdirat(&parent, part, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => parent = open(&parent, part)?,
                    Err(error) => return Err(error.into()),
                }
            }
            let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&parent, name, new, Mode::RUSR | Mode::WUSR)?;
            File::from(file).write_all(text.as_bytes())?;
        }
        Ok(())
    }

    /// Removes the files that were written, and then empty directories, without following symlinks.
    pub fn remove(&self, root: &OwnedFd) {
        for (path, _) in &self.0 {
            let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            for length in (1..=parts.len()).rev() {
                let Some((name, above)) = parts[..length].split_last() else { continue };
                let parent = above
                    .iter()
                    .try_fold(root.try_clone(), |parent, part| Ok::<_, ()>(open(&parent.map_err(|_| ())?, *part)));
                let Ok(Ok(parent)) = parent else { continue };
                let kind = if length == parts.len() { AtFlags::empty() } else { AtFlags::REMOVEDIR };
                _ = rustix::fs::unlinkat(&parent, *name, kind);
            }
        }
    }
}

/// Opens a directory, but not through a symlink.
pub fn open(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

const HINT: &str = "give the name of a new directory on a local file system, in a directory where you may write";

/// A new directory that only its owner can access, for a tree. It is removed if it stays empty.
pub struct Target {
    parent: OwnedFd,
    name: OsString,
    root: OwnedFd,
    /// only for messages
    path: PathBuf,
}

impl Target {
    /// Creates the directory. Neither `dir` nor a symlink with its name may exist.
    pub fn create(dir: &Path) -> std::result::Result<Target, error::Error> {
        let refused = |why: &str| error::Error::new(format!("\"{}\" {why}", dir.display()), HINT);
        let name = dir.file_name().ok_or_else(|| refused("is not a directory name"))?;
        let parent =
            output_file::open_directory(output_file::directory_of(dir)).map_err(|e| failed("create", dir, e))?;
        match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(refused("exists")),
            // A name can be too long.
            Err(error) => return Err(failed("create", dir, error)),
        }
        match open_new(&parent, name, rustix::process::geteuid().as_raw()) {
            Ok(root) => Ok(Target { parent, name: name.into(), root, path: dir.into() }),
            Err(error) => {
                remove_empty(&parent, name);
                Err(failed("create", dir, error))
            }
        }
    }

    /// Writes the tree. If that fails, nothing of it remains.
    pub fn write(&self, files: &Files) -> std::result::Result<(), error::Error> {
        files.write(&self.root).map_err(|e| {
            files.remove(&self.root);
            failed("write", &self.path, e)
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        remove_empty(&self.parent, &self.name);
    }
}

/// Returns the error that this program could not create or write a directory.
fn failed(verb: &str, dir: &Path, error: impl Into<Error>) -> error::Error {
    let error = error.into();
    let what = format!("could not {verb} \"{}\": {}", dir.display(), crate::human::reason(&error));
    error::Error::new(what, output_file::hint(&error).unwrap_or(HINT))
}

/// Removes the directory if it is empty. If another user has replaced it, nothing else is removed.
fn remove_empty(parent: &OwnedFd, name: impl rustix::path::Arg) {
    _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Opens a directory that this program has just created. `own` is this program's user.
fn open_new(parent: &OwnedFd, name: impl rustix::path::Arg, own: u32) -> Result<OwnedFd> {
    let root = open(parent, name)?;
    let owner = rustix::fs::fstat(&root)?.st_uid;
    if owner != own {
        return Err(Error::other(format!(
            "the new directory belongs to another user (uid {owner}): the file system changes owners, or another user replaced it"
        )));
    }
    // The new directory must be empty. Otherwise another user has given its name to an older directory of this user.
    for entry in rustix::fs::Dir::read_from(&root)? {
        if ![&b"."[..], b".."].contains(&entry?.file_name().to_bytes()) {
            return Err(Error::other("another user has replaced the new directory"));
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn no_file_outside_of_the_tree_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("secret"));
        std::fs::create_dir_all(root.join("proc")).unwrap();
        std::fs::write(&outside, "x").unwrap();
        std::fs::write(root.join("proc/name"), "name").unwrap();
        symlink("../proc/name", root.join("proc/good")).unwrap();
        symlink(&outside, root.join("proc/link")).unwrap();
        symlink("../../secret", root.join("proc/relative")).unwrap();
        symlink(dir.path(), root.join("proc/folder")).unwrap();
        rustix::fs::mkfifoat(CWD, root.join("proc/pipe"), Mode::RWXU).unwrap();
        let by_steps = |root: &Path, path: &str| open_by_steps(root, path.trim_start_matches('/')).map(File::from);
        for open in [open_file, by_steps as fn(&Path, &str) -> Result<File>] {
            for path in ["/proc/name", "/proc/good"] {
                let mut text = String::new();
                open(&root, path).unwrap().read_to_string(&mut text).unwrap();
                assert_eq!(text, "name");
            }
            for path in ["/proc/link", "/proc/relative", "/proc/folder/secret", "/proc/../../secret", "/proc/none"] {
                assert!(open(&root, path).is_err(), "{path}");
            }
        }
        for path in ["/proc", "/proc/pipe", ""] {
            assert!(open_file(&root, path).is_err(), "{path}");
        }
    }

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
        let error = |name: &str| Target::create(&path(name)).err().unwrap_or_else(|| panic!("{name}")).to_string();
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
        Target::create(&path("tree")).unwrap();
        Target::create(&path(&"x".repeat(255))).unwrap();
        assert_eq!(names(parent.path()), 3, "an empty directory is removed");
    }

    /// Another user owns the symlink in the path, and lets it point to a directory of ours.
    #[test]
    fn the_path_is_resolved_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("shared")).unwrap();
        std::fs::create_dir(path("private")).unwrap();
        symlink("shared", path("link")).unwrap();
        let target = Target::create(&path("link/tree")).unwrap();
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
            let root = super::open(CWD, parent.path()).unwrap();
            attack(parent.path(), victim.path());
            assert!(tree().write(&root).is_err());
            tree().remove(&root);
            assert_eq!(std::fs::read_to_string(&key).unwrap(), "secret");
            assert_eq!(names(victim.path()), 1);
        }
    }

    /// Another user has moved our directory away, and given its name to a directory with files.
    #[test]
    fn a_directory_of_another_user_is_neither_written_nor_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let target = Target::create(&path("tree")).unwrap();
        std::fs::rename(path("tree"), path("moved")).unwrap();
        std::fs::create_dir_all(path("tree/proc")).unwrap();
        std::fs::write(path("tree/proc/cpuinfo"), "theirs").unwrap();
        target.write(&tree()).unwrap();
        drop(target);
        assert_eq!(std::fs::read_to_string(path("tree/proc/cpuinfo")).unwrap(), "theirs");
        assert_eq!(std::fs::read_to_string(path("moved/proc/cpuinfo")).unwrap(), "a");
        let own = rustix::process::geteuid().as_raw();
        let error = open_new(&super::open(CWD, parent.path()).unwrap(), "tree", own).unwrap_err();
        assert_eq!(error.to_string(), "another user has replaced the new directory");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let target = Target::create(&parent.path().join("tree")).unwrap();
        let mut files = tree();
        files.add("/proc/cpuinfo/x", "a file is no directory");
        assert!(target.write(&files).is_err());
        drop(target);
        assert_eq!(names(parent.path()), 0);
    }

    #[test]
    fn a_new_directory_of_another_owner_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("new")).unwrap();
        let open_parent = super::open(CWD, parent.path()).unwrap();
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
        Target::create(&path).unwrap().write(&tree()).unwrap();
        let mode = |name: &str| path.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(""), mode("proc"), mode("proc/cpuinfo")], [0o700, 0o700, 0o600]);
        assert_eq!(std::fs::read_to_string(path.join("proc/sys/kernel/osrelease")).unwrap(), "b");
    }
}
