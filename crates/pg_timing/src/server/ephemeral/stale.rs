//! Removes the folders of runs that were killed together with their guardians.

use super::cleanup::remove;
use super::folder::open_folder;
use super::marker::{lock, open_marker};
use super::removal_limit::RemovalLimit;
use rustix::fs::fstat;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// The start of a folder's name. 16 hexadecimal digits follow.
pub const PREFIX: &str = "pg_timing.";
const DIGITS: usize = 16;
/// A younger folder without a marker may be new: its guardian has not marked it yet. An older one is stale.
const MIN_AGE: Duration = Duration::from_secs(60);

/// Removes the stale folders of this user in `base`, with their servers. Returns the folders that are not removed, with
/// the reason.
pub fn remove_stale(base: &Path, owner: libc::uid_t, stop: &AtomicBool) -> Vec<(PathBuf, String)> {
    let limit = RemovalLimit::new(Some(stop));
    let mut left = Vec::new();
    // The lock lasts until the folder is removed, so that no other run removes it, too.
    for (folder, _lock) in stale(base, owner) {
        if !limit.is_left() {
            break;
        }
        if let Err(error) = remove(&folder, owner, &limit)
            && folder.symlink_metadata().is_ok()
        {
            left.push((folder, crate::human::reason(&error)));
        }
    }
    left
}

/// Returns the stale folders, with their locked markers.
fn stale(base: &Path, owner: libc::uid_t) -> Vec<(PathBuf, Option<File>)> {
    if !is_safe(base, owner) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_our_name))
        .map(|entry| entry.path())
        .filter_map(|folder| {
            let lock = lock_if_abandoned(&open_folder(&folder, owner)?)?;
            Some((folder, lock))
        })
        .collect()
}

/// Returns whether no other user than root can rename this user's folders in `base`.
fn is_safe(base: &Path, owner: libc::uid_t) -> bool {
    const OTHERS_CAN_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    base.metadata().is_ok_and(|base| {
        let is_private = base.mode() & OTHERS_CAN_WRITE == 0 || base.mode() & STICKY != 0;
        is_private && [0, owner].contains(&base.uid())
    })
}

fn is_our_name(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Returns the locked marker, if the folder has one. Returns `None` if a guardian or another run has the folder.
fn lock_if_abandoned(folder: &OwnedFd) -> Option<Option<File>> {
    if let Some(marker) = open_marker(folder) {
        return lock(&marker).then_some(Some(marker));
    }
    let modified = u64::try_from(fstat(folder).ok()?.st_mtime).unwrap_or(0);
    let age = (SystemTime::UNIX_EPOCH + Duration::from_secs(modified)).elapsed().ok()?;
    (age > MIN_AGE).then_some(None)
}

#[cfg(test)]
mod tests {
    use super::super::marker::{NEW_MARKER, mark, mark_abandoned, unlock};
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn owner() -> libc::uid_t {
        // SAFETY: it only returns a number.
        unsafe { libc::geteuid() }
    }

    fn folder_in(base: &tempfile::TempDir, name: &str) -> PathBuf {
        let folder = base.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    fn count_stale(base: &tempfile::TempDir) -> usize {
        let folders = stale(base.path(), owner());
        folders.iter().filter_map(|(_, lock)| lock.as_ref()).for_each(unlock);
        folders.len()
    }

    #[test]
    fn a_stale_folder_is_locked() {
        let base = tempfile::tempdir().unwrap();
        mark_abandoned(&folder_in(&base, "pg_timing.00000000000000ab"));
        let first = stale(base.path(), owner());
        assert_eq!((first.len(), stale(base.path(), owner()).len()), (1, 0));
        first.iter().filter_map(|(_, lock)| lock.as_ref()).for_each(unlock);
        assert_eq!(count_stale(&base), 1);
    }

    #[test]
    fn only_abandoned_folders_are_stale() {
        let base = tempfile::tempdir().unwrap();
        let folder = |name: &str| folder_in(&base, name);
        let make_old = |folder: &Path| File::open(folder).unwrap().set_modified(SystemTime::now() - 2 * MIN_AGE);
        let in_use = folder("pg_timing.0000000000000001");
        let _lock = mark(&in_use).unwrap();
        let abandoned = folder("pg_timing.00000000000000ab");
        mark_abandoned(&abandoned);
        let young = folder("pg_timing.0000000000000003");
        let old = folder("pg_timing.0000000000000004");
        std::fs::write(old.join(NEW_MARKER), "").unwrap();
        make_old(&old).unwrap();
        // A folder of another program.
        let unmarked = folder("pg_timing.0000000000000005");
        std::fs::write(unmarked.join("data"), "").unwrap();
        make_old(&unmarked).unwrap();
        let deep = folder("pg_timing.0000000000000006");
        mark_abandoned(&deep);
        std::fs::create_dir_all(deep.join("x/".repeat(100))).unwrap();
        for other in ["pg_timing.x", "pg_timing.00000000000000zz", "other.0000000000000001"] {
            mark_abandoned(&folder(other));
        }
        assert!(stale(base.path(), owner() + 1).is_empty());
        let stopped = remove_stale(base.path(), owner(), &AtomicBool::new(true));
        assert!(stopped.is_empty() && abandoned.exists(), "a signal ends it");
        let left = remove_stale(base.path(), owner(), &AtomicBool::new(false));
        assert!(left.len() == 1 && left[0].0 == deep, "{left:?}");
        assert!(unmarked.exists());
        assert!(in_use.exists() && young.exists() && !old.exists() && !abandoned.exists());
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 7);
    }

    #[test]
    fn nothing_is_removed_where_other_users_can_rename_folders() {
        let base = tempfile::tempdir().unwrap();
        mark_abandoned(&folder_in(&base, "pg_timing.00000000000000ab"));
        for (mode, count) in [(0o700, 1), (0o755, 1), (0o1777, 1), (0o777, 0), (0o775, 0)] {
            std::fs::set_permissions(base.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(count_stale(&base), count, "{mode:o}");
        }
        if owner() == 0 {
            std::os::unix::fs::chown(base.path(), Some(65534), None).unwrap();
            std::fs::set_permissions(base.path(), Permissions::from_mode(0o1777)).unwrap();
            assert!(stale(base.path(), owner()).is_empty(), "the owner of a sticky directory can rename folders in it");
        }
    }
}
