//! The private folder of a temporary server: data directory, socket and log.
//!
//! The log is locked as long as the program or a process of the server runs. A folder whose log is not locked was abandoned.

use super::User;
use crate::human::reason;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The beginning of the folder's name; 16 hexadecimal digits follow.
const PREFIX: &str = "pg_timing.";
const DIGITS: usize = 16;
const LOG: &str = "pg_timing.log";
/// The longest base path, in bytes. A socket's address has at most 107 bytes on Linux, and 103 on other systems.
const MAX_BASE: usize = 60;

/// A folder that only the server's user can access. Dropping it removes it.
pub struct Folder {
    pub path: PathBuf,
    /// locked until the folder is removed
    pub log: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next run tries it again. The standard library follows no symlink, also if another user replaces a directory meanwhile.
        _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Folder {
    /// Creates a folder with an unused name. Returns why that is not possible.
    pub fn create(base: &Path, user: Option<&User>) -> Result<Folder, String> {
        // The hasher of the standard library has a random seed.
        let path = base.join(format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        let log = DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .and_then(|()| new_log(&path, user).inspect_err(|_| _ = std::fs::remove_dir_all(&path)));
        match log {
            Ok(log) => Ok(Folder { path, log }),
            Err(error) => Err(format!("could not create {}: {}", path.display(), reason(&error))),
        }
    }
}

/// Creates the log and locks it. Gives the folder to the server's user afterwards, who then can replace files in it: root opens none
/// of them for writing.
fn new_log(folder: &Path, user: Option<&User>) -> std::io::Result<File> {
    let log = OpenOptions::new().read(true).append(true).create_new(true).open(folder.join(LOG))?;
    // Some network file systems have no locks. Later runs cannot lock the file there, either, so they leave the folder.
    _ = flock(&log, FlockOperation::NonBlockingLockExclusive);
    if let Some(user) = user {
        std::os::unix::fs::chown(folder, Some(user.uid), Some(user.gid))?;
    }
    Ok(log)
}

/// Returns the directory for the folder: the one that TMPDIR names, or /tmp if that is not suitable. Another user may have no access
/// to root's directory.
pub fn base(given: &Path, owner: libc::uid_t, has_other_user: bool) -> PathBuf {
    // The server does not run in this program's directory, so the path must be absolute.
    let is_suitable = |path: &PathBuf| !has_other_user && path.as_os_str().len() <= MAX_BASE && is_safe(path, owner);
    let given = given.canonicalize().ok().filter(is_suitable);
    given.or_else(|| Path::new("/tmp").canonicalize().ok()).unwrap_or_else(|| "/tmp".into())
}

/// Removes the abandoned folders of this user in `base`. The next run tries again what cannot be removed.
pub fn remove_abandoned(base: &Path, owner: libc::uid_t) {
    if !is_safe(base, owner) {
        return;
    }
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_our_name);
        // The lock lasts until the folder is removed, so that no other run removes it, too.
        if is_ours && let Some(_lock) = lock_if_abandoned(&entry.path(), owner) {
            _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether no other user than root can rename this user's folders in `base`, or a directory above it.
fn is_safe(base: &Path, owner: libc::uid_t) -> bool {
    const OTHERS_CAN_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    base.ancestors().all(|directory| {
        directory.metadata().is_ok_and(|state| {
            let is_private = state.mode() & OTHERS_CAN_WRITE == 0 || state.mode() & STICKY != 0;
            is_private && [0, owner].contains(&state.uid())
        })
    })
}

fn is_our_name(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Returns the locked log of an abandoned folder.
fn lock_if_abandoned(folder: &Path, owner: libc::uid_t) -> Option<File> {
    let state = folder.symlink_metadata().ok()?;
    if !state.is_dir() || state.uid() != owner {
        return None;
    }
    // The server's user can replace the file. A symlink is not followed, and a named pipe does not block.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let lock = OpenOptions::new().read(true).custom_flags(flags).open(folder.join(LOG)).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn owner() -> libc::uid_t {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn the_base_has_no_symlinks() {
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert_eq!(base(&link, owner(), false), dir.path().canonicalize().unwrap());
        let tmp = Path::new("/tmp").canonicalize().unwrap();
        assert_eq!(base(Path::new("/missing"), owner(), false), tmp);
        let long = dir.path().join("x".repeat(MAX_BASE));
        std::fs::create_dir(&long).unwrap();
        assert_eq!(base(&long, owner(), false), tmp);
        assert_eq!(base(&link, owner(), true), tmp, "another user has perhaps no access");
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        assert_eq!(base(&link, owner(), false), tmp, "another user could rename the folder");
    }

    #[test]
    fn only_abandoned_folders_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = base.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            folder
        };
        let in_use = Folder::create(base.path(), None).unwrap();
        let abandoned = folder("pg_timing.00000000000000ab");
        std::fs::create_dir(abandoned.join("data")).unwrap();
        File::create(abandoned.join(LOG)).unwrap();
        // Its log is not created yet.
        let young = folder("pg_timing.0000000000000003");
        let of_another_program = folder("pg_timing.0000000000000005");
        std::fs::write(of_another_program.join("data"), "").unwrap();
        let target = folder("target");
        File::create(target.join(LOG)).unwrap();
        std::os::unix::fs::symlink(&target, base.path().join("pg_timing.0000000000000006")).unwrap();
        for other in ["pg_timing.x", "pg_timing.00000000000000zz", "other.0000000000000001"] {
            File::create(folder(other).join(LOG)).unwrap();
        }
        remove_abandoned(base.path(), owner() + 1);
        assert!(abandoned.exists(), "of another user");
        remove_abandoned(base.path(), owner());
        assert!(!abandoned.exists());
        assert!(in_use.path.exists() && young.exists() && of_another_program.exists() && target.join(LOG).exists());
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 8);
        let path = in_use.path.clone();
        drop(in_use);
        assert!(!path.exists());
    }

    #[test]
    fn nothing_is_removed_where_other_users_can_rename_folders() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("pg_timing.00000000000000ab");
        let is_removed = |mode: u32| {
            std::fs::set_permissions(base.path(), Permissions::from_mode(0o700)).unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            File::create(folder.join(LOG)).unwrap();
            std::fs::set_permissions(base.path(), Permissions::from_mode(mode)).unwrap();
            remove_abandoned(base.path(), owner());
            !folder.exists()
        };
        for (mode, removed) in [(0o700, true), (0o755, true), (0o1777, true), (0o777, false), (0o775, false)] {
            assert_eq!(is_removed(mode), removed, "{mode:o}");
        }
    }
}
