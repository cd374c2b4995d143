//! Captured trees: opens their files, and writes a new one for `check --capture`, safely even if another user changes the tree
//! or its path meanwhile. The new tree contains nothing that identifies the host.
//!
//! The path of a new tree is resolved only once: all later steps use the open directory, which only its owner can change.

use super::machine::{ASSET_TAG, AZURE_TAG, GVISOR_VERSION, captured_cpuid};
use super::*;
use crate::host::kernel_log::KernelClockLog;
use crate::json::json;
use crate::{error, output_file};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::{AsFd, OwnedFd};

/// The flags for reading. With NONBLOCK, a named pipe does not block.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// The flags for the parent of a new tree, which is only searched. Linux needs no permission to read it.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = READ;

/// Opens a regular file of the tree in `root`, given its absolute path on the machine. Symlinks are resolved in the
/// tree. An absolute symlink, and one out of the tree, is refused.
pub fn open_file(root: &Path, path: &str) -> Result<File> {
    let refused = |why| Error::new(ErrorKind::InvalidInput, why);
    let (root, file) = (root.canonicalize()?, root.join(path.trim_start_matches('/')).canonicalize()?);
    let parts = file.strip_prefix(&root).map_err(|_| refused("outside of the captured tree"))?;
    let root = rustix::fs::openat(CWD, &root, READ | OFlags::DIRECTORY, Mode::empty())?;
    // A resolved path has no symlinks.
    let open = |parent: OwnedFd, part| rustix::fs::openat(&parent, part, READ | OFlags::NOFOLLOW, Mode::empty());
    let file = File::from(parts.iter().try_fold(root, open)?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused("not a regular file")) }
}

/// Opens a directory, but not through a symlink.
fn open(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
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
        let parent = output_file::safe_directory(output_file::directory_of(dir))
            .and_then(|parent| Ok(rustix::fs::openat(CWD, parent, SEARCH | OFlags::DIRECTORY, Mode::empty())?));
        let parent = parent.map_err(|e| failed("create", dir, e))?;
        rustix::fs::mkdirat(&parent, name, Mode::RWXU).map_err(|error| match error {
            Errno::EXIST => refused("exists"),
            // A name can be too long.
            _ => failed("create", dir, error),
        })?;
        let root = open_new(&parent, name, rustix::process::geteuid().as_raw());
        let root = root.inspect_err(|_| remove_empty(&parent, name)).map_err(|error| failed("create", dir, error))?;
        Ok(Target { parent, name: name.into(), root, path: dir.into() })
    }

    /// Writes the tree. If that fails, nothing of it remains. Only its owner can change the directory, even if its
    /// path leads elsewhere by then.
    pub fn write(&self, files: &[(String, String)]) -> std::result::Result<(), error::Error> {
        let write = |(path, text): &(String, String)| {
            let path = path.trim_start_matches('/');
            for (end, _) in path.match_indices('/') {
                let made = rustix::fs::mkdirat(&self.root, &path[..end], Mode::RWXU);
                made.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })?;
            }
            let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.root, path, new, Mode::RUSR | Mode::WUSR)?;
            File::from(file).write_all(text.as_bytes())
        };
        files.iter().try_for_each(write).map_err(|e: Error| {
            for path in files.iter().map(|(path, _)| path.trim_start_matches('/')) {
                _ = rustix::fs::unlinkat(&self.root, path, AtFlags::empty());
                for (end, _) in path.rmatch_indices('/') {
                    remove_empty(&self.root, &path[..end]);
                }
            }
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
    let what = format!("could not {verb} \"{}\"", dir.display());
    error::Error::io(what, &error, output_file::hint(&error).unwrap_or(HINT))
}

/// Removes the directory if it is empty. If another user has replaced it, nothing else is removed.
fn remove_empty(parent: &OwnedFd, name: impl rustix::path::Arg) {
    _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Opens a directory that this program has just created. `own` is this program's user.
fn open_new(parent: &OwnedFd, name: impl rustix::path::Arg, own: u32) -> Result<OwnedFd> {
    let root = open(parent, name)?;
    let state = rustix::fs::fstat(&root)?;
    if state.st_uid != own {
        return Err(Error::other(format!(
            "the new directory belongs to another user (uid {}): the file system changes owners, or another user replaced it",
            state.st_uid
        )));
    }
    // Otherwise they could plant symlinks in it.
    if state.st_mode & 0o022 != 0 {
        return Err(Error::other("other users can write to the new directory"));
    }
    // The new directory must be empty. Otherwise another user has given its name to an older directory of this user.
    for entry in rustix::fs::Dir::read_from(&root)? {
        if ![&b"."[..], b".."].contains(&entry?.file_name().to_bytes()) {
            return Err(Error::other("another user has replaced the new directory"));
        }
    }
    Ok(root)
}

/// Files that contain only facts about clocks, CPUs and the kind of machine. They are copied whole.
const COPIED: &str = "/proc/sys/kernel/osrelease /proc/uptime /sys/devices/system/cpu/online /sys/power/suspend_stats/success \
    /sys/hypervisor/type /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/bios_version";

/// Fields of the first CPU in /proc/cpuinfo that are copied. Other fields can identify the machine, like ARM's
/// `Serial`.
const CPUINFO: &str = "processor,vendor_id,cpu family,model,model name,stepping,flags,bogomips,BogoMIPS,Features,CPU implementer,\
    CPU architecture,CPU variant,CPU part,CPU revision";

/// Returns the files of a new tree: absolute path on the machine, and contents. They contain the facts of this machine, the lines
/// about clocks in its kernel log, and the figures.
pub fn files(host: &Host, log: &KernelLog, report: &Report) -> Vec<(String, String)> {
    let log = log.entries.known().map(KernelClockLog::lines_about_clocks).filter(|lines| !lines.is_empty());
    let is_azure = host.read_line(ASSET_TAG) == Fact::Known(AZURE_TAG.into());
    let is_firecracker = report.host.platform == Fact::Known("Firecracker".into());
    let cpuid = host.features().known().map(|features| json(&captured_cpuid(features)));
    // Without the rest of the report, which can identify the host.
    let Report { measured_seconds, clocks, tsc, cpus, activity, drift, .. } = report.clone();
    let figures = Report { measured_seconds, clocks, tsc, cpus, activity, drift, ..Report::default() };
    let copied = COPIED.split(' ').chain([CURRENT_CLOCKSOURCE, AVAILABLE_CLOCKSOURCE]);
    let copied = copied.map(|path| (path.to_string(), host.read(path).known().cloned()));
    let others = [
        ("/proc/cpuinfo".into(), host.read("/proc/cpuinfo").known().map(|text| first_cpu(text))),
        ("/proc/cmdline".into(), host.boot_parameters().known().map(|parameters| parameters.join(" ") + "\n")),
        // Some files can identify the machine. Of these, only the part that is equal on all machines is written.
        (ASSET_TAG.into(), is_azure.then(|| format!("{AZURE_TAG}\n"))),
        ("/proc/version".into(), host.is_gvisor().then(|| format!("{GVISOR_VERSION}\n"))),
        ("/sys/firmware/acpi/tables/DSDT".into(), is_firecracker.then(|| "FIRECK\n".into())),
        ("/var/log/dmesg".into(), log.map(|lines| lines.join("\n") + "\n")),
        (json_path("cpuid"), cpuid),
        (json_path("ntp"), report.host.ntp.known().map(json)),
        (json_path("measured"), Some(json(&figures))),
    ];
    copied.chain(others).filter_map(|(path, text)| Some((path, text?))).collect()
}

/// Returns the first CPU's block of /proc/cpuinfo, with the copied fields.
fn first_cpu(cpuinfo: &str) -> String {
    let block = cpuinfo.lines().take_while(|line| !line.trim().is_empty());
    let is_copied = |key: &str| CPUINFO.split(',').any(|copied| copied == key.trim());
    let kept = block.filter(|line| line.split_once(':').is_some_and(|(key, _)| is_copied(key)));
    kept.map(|line| format!("{line}\n")).collect()
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
        for path in ["/proc/name", "/proc/good"] {
            let mut text = String::new();
            open_file(&root, path).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "name");
        }
        let outside = ["/proc/link", "/proc/relative", "/proc/folder/secret", "/proc/../../secret"];
        for path in outside.iter().chain(&["/proc/none", "/proc", "/proc/pipe", ""]) {
            assert!(open_file(&root, path).is_err(), "{path}");
        }
    }

    fn tree() -> Vec<(String, String)> {
        [("/proc/cpuinfo", "a"), ("/proc/sys/kernel/osrelease", "b")]
            .map(|(path, text)| (path.into(), text.into()))
            .into()
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
        files.push(("/proc/cpuinfo/x".into(), "a file is no directory".into()));
        assert!(target.write(&files).is_err());
        drop(target);
        assert_eq!(names(parent.path()), 0);
    }

    #[test]
    fn a_new_directory_that_others_own_or_can_write_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("new")).unwrap();
        let open_parent = super::open(CWD, parent.path()).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert!(open_new(&open_parent, "new", own).is_ok());
        let error = open_new(&open_parent, "new", own + 1).unwrap_err().to_string();
        assert!(error.contains(&format!("(uid {own}): the file system changes owners")), "{error}");
        std::fs::set_permissions(parent.path().join("new"), std::fs::Permissions::from_mode(0o720)).unwrap();
        assert_eq!(
            open_new(&open_parent, "new", own).unwrap_err().to_string(),
            "other users can write to the new directory"
        );
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

    #[test]
    fn the_first_cpu_is_copied_without_its_serial_number() {
        let text = "processor\t: 0\nmodel name\t: X\nSerial\t\t: 0000000012345678\n\nprocessor\t: 1\n";
        assert_eq!(first_cpu(text), "processor\t: 0\nmodel name\t: X\n");
    }
}
