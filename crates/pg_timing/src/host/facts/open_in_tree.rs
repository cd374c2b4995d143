//! Opens a file of a captured tree. Nothing outside of the tree is read, even if another user changes the tree
//! meanwhile.

use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The flags for reading. With NONBLOCK, a named pipe does not block.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens a regular file of the tree in `root`, given its absolute path on the machine. Symlinks are resolved in the
/// tree. Without openat2 an absolute symlink is refused.
pub fn open(root: &Path, path: &str) -> Result<File> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

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
        for open in [open, by_steps as fn(&Path, &str) -> Result<File>] {
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
            assert!(open(&root, path).is_err(), "{path}");
        }
    }
}
