//! A temporary server, started from the installed binaries. It listens only on a socket in a private folder.
//!
//! The server dies with this program, because the kernel then sends it a signal. The folder is removed when the program ends. What a
//! SIGKILL has left is removed at the next start: the log in the folder is locked as long as the program or a process of the server
//! runs, so a folder whose log is not locked was abandoned.

use crate::error::{Error, require};
use crate::human::reason;
use crate::server::connection::Target;
use rustix::fs::{FlockOperation, flock};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, kill_process_group, test_kill_process_group};
use std::cmp::Reverse;
use std::ffi::CString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit for initdb and the start. They take two seconds, and several times as much on a slow host.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Time limit for a program that prints one line. It takes milliseconds.
const PRINT_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for the end. PostgreSQL waits five seconds for its own processes.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Interval between checks.
const PAUSE: Duration = Duration::from_millis(10);
/// An error message is at the end of a log, and it is much shorter than this. A statement can fill a log with gigabytes.
const MAX_MESSAGE_BYTES: u64 = 64 << 10;
const HINT: &str = "give the connection options of a running server; a temporary one needs 60 MB and the permission to write in /tmp, \
    or in the directory that TMPDIR names";
const SUPERUSER: &str = "postgres";
/// The socket's folder is private, so all temporary servers can use the same port.
const PORT: &str = "5432";
/// The beginning of the folder's name; 16 hexadecimal digits follow.
const PREFIX: &str = "pg_timing.";
const DIGITS: usize = 16;
const LOG: &str = "pg_timing.log";
/// The longest base path, in bytes. A socket's address has at most 107 bytes on Linux, and 103 on other systems.
const MAX_BASE: usize = 60;

/// A running temporary server. Dropping it removes the server.
pub struct Ephemeral {
    pub installation: Installation,
    server: Child,
    // After the server: fields are dropped in this order.
    folder: Folder,
}

impl Ephemeral {
    /// Starts a server, which takes a few seconds. `stop` cancels that.
    pub fn start(stop: &AtomicBool) -> Result<Ephemeral, Error> {
        remove_server_variables();
        let user = User::for_server()?;
        let owner = user.as_ref().map_or(rustix::process::geteuid().as_raw(), |user| user.uid);
        let base = base(&std::env::temp_dir(), owner, user.is_some());
        remove_abandoned(&base, owner);
        let stopped = || Error::new("stopped", "the temporary server was removed");
        let unless_stopped = |error| if stop.load(Ordering::Relaxed) { stopped() } else { error };
        let failed =
            |why: String| unless_stopped(Error::new(format!("could not start a temporary server: {why}"), HINT));
        let folder = Folder::create(&base, user).map_err(failed)?;
        let installation = Installation::newest(&folder, stop).map_err(unless_stopped)?;
        let of_version = |why: String| failed(format!("PostgreSQL {}: {why}", installation.version));
        let server = start_server(&installation, &folder, &until(stop, START_LIMIT)).map_err(of_version)?;
        Ok(Ephemeral { installation, server, folder })
    }

    /// Returns the connection options of the server.
    pub fn target(&self) -> Target {
        Target {
            host: Some(self.folder.path.display().to_string()),
            port: Some(PORT.into()),
            username: Some(SUPERUSER.into()),
            // The server's user could replace the socket, and ask for a password: this file does not exist.
            database: Some("dbname=postgres passfile=/dev/null/none".into()),
            no_password: true,
            ..Target::default()
        }
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        // At once (SIGQUIT), because the data is not needed.
        end(&mut self.server, Signal::QUIT);
    }
}

type Test<'a> = &'a dyn Fn() -> bool;

/// Returns a test of whether the user stopped the start, or the time is over.
fn until(stop: &AtomicBool, limit: Duration) -> impl Fn() -> bool {
    let start = Instant::now();
    move || stop.load(Ordering::Relaxed) || start.elapsed() > limit
}

/// Creates a database cluster in the folder and starts a server. Returns the server when it accepts connections, or why it does not.
fn start_server(installation: &Installation, folder: &Folder, is_over: Test) -> Result<Child, String> {
    let failed = |error: std::io::Error| reason(&error);
    let data = folder.path.join("data");
    let mut initdb = folder.command(&installation.bin.join("initdb"));
    initdb.args(["-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--no-sync", "-D"]).arg(&data);
    // A full disk has no space for a log. The messages fit into a pipe.
    output(initdb.stderr(Stdio::piped()), Signal::TERM, is_over)?;
    let mut server = folder.command(&installation.bin.join("postgres"));
    server.arg("-D").arg(&data).arg("-k").arg(&folder.path).args(["-p", PORT]);
    for setting in ["listen_addresses=", "fsync=off", "dynamic_shared_memory_type=mmap", "logging_collector=off"] {
        server.args(["-c", setting]);
    }
    let mut server = server.stderr(folder.log.try_clone().map_err(failed)?).spawn().map_err(failed)?;
    // Its messages are in English, because its environment has LC_ALL=C and the cluster has this locale.
    let is_ready = || end_of(&folder.log).contains("database system is ready to accept connections");
    match wait(&mut server, Signal::QUIT, is_over, &is_ready)? {
        true => Ok(server),
        false => Err(error_message(&end_of(&folder.log))),
    }
}

/// Runs a program to its end. Returns what it wrote into pipes, or why it failed.
fn output(program: &mut Command, signal: Signal, is_over: Test) -> Result<String, String> {
    let mut program = program.spawn().map_err(|error| reason(&error))?;
    wait(&mut program, signal, is_over, &|| false)?;
    let text = written(program.stdout.take()) + &written(program.stderr.take());
    let has_succeeded = program.wait().is_ok_and(|status| status.success());
    if has_succeeded { Ok(text) } else { Err(error_message(&text)) }
}

/// Returns what a program wrote into a pipe before it ended. A process that it started may keep the pipe open, so the read does not wait.
fn written(pipe: Option<impl Read + AsFd>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe.filter(|pipe| rustix::io::ioctl_fionbio(pipe, true).is_ok()) {
        _ = pipe.take(MAX_MESSAGE_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for a condition, or for the end of the program. Returns whether the program still runs. If the time is over, ends it with the
/// signal.
fn wait(program: &mut Child, signal: Signal, is_over: Test, is_done: Test) -> Result<bool, String> {
    while !is_done() {
        if program.try_wait().map_err(|error| reason(&error))?.is_some() {
            return Ok(false);
        }
        if is_over() {
            end(program, signal);
            return Err("it did not start in time".into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// Ends a program with a signal, and waits for the processes that it started, because they still remove shared memory. SIGKILL ends
/// all of them at once.
fn end(program: &mut Child, signal: Signal) {
    // The process group has the number of the program.
    let (group, start) = (Pid::from_child(program), Instant::now());
    if let Ok(None) = program.try_wait() {
        _ = kill_process(group, signal);
    }
    while matches!(program.try_wait(), Ok(None)) || test_kill_process_group(group).is_ok() {
        if signal == Signal::KILL || start.elapsed() > END_LIMIT {
            _ = kill_process_group(group, Signal::KILL);
            _ = program.wait();
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns the last part of a file, or nothing if it cannot be read.
fn end_of(log: &File) -> String {
    let mut end = vec![0; MAX_MESSAGE_BYTES as usize];
    let start = log.metadata().map_or(0, |log| log.len().saturating_sub(MAX_MESSAGE_BYTES));
    let length = log.read_at(&mut end, start).unwrap_or(0);
    String::from_utf8_lossy(&end[..length]).into_owned()
}

/// Returns the first error message in the text.
fn error_message(text: &str) -> String {
    const MARKS: [&str; 3] = ["FATAL:  ", "PANIC:  ", "initdb: error: "];
    let why = |line: &str| MARKS.iter().find_map(|mark| Some(line.split_once(mark)?.1.trim().to_string()));
    text.lines().find_map(why).unwrap_or_else(|| "it ended without an error message".into())
}

/// Removes the PG* variables, because libpq and the server's programs would use them. PGOPTIONS does not select a server.
fn remove_server_variables() {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") && name != "PGOPTIONS" {
            // SAFETY: no other thread reads the environment now.
            unsafe { std::env::remove_var(name) };
        }
    }
}

/// The user of the temporary server if this program runs as root, because PostgreSQL refuses to run as root.
struct User {
    uid: libc::uid_t,
    gid: libc::gid_t,
}

impl User {
    /// Returns the user for the server, or `None` if this process is not root. Then the server runs as this process's user.
    fn for_server() -> Result<Option<User>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let sudo = std::env::var("SUDO_USER").ok();
        let user = ["postgres"].into_iter().chain(sudo.as_deref()).chain(["nobody"]).find_map(User::named);
        let why = "PostgreSQL refuses to run as root, and no user postgres, $SUDO_USER or nobody was found";
        require(user.is_some(), why, "run pg_timing as an ordinary user").map(|()| user)
    }

    fn named(name: &str) -> Option<User> {
        let name = CString::new(name).ok()?;
        // SAFETY: the result is copied at once, and no other thread calls it.
        let entry = unsafe { libc::getpwnam(name.as_ptr()).as_ref()? };
        (entry.pw_uid != 0).then_some(User { uid: entry.pw_uid, gid: entry.pw_gid })
    }
}

/// An installed PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// version, like `18.6`
    pub version: String,
    /// the folder with `initdb` and `postgres`
    pub bin: PathBuf,
}

/// The folders of packages, where `*` is a version: Debian and Ubuntu; PGDG for Red Hat; Red Hat, SUSE and Alpine;
/// built from source; Homebrew on both kinds of Mac; the installer for macOS; FreeBSD.
const USUAL_FOLDERS: [&str; 10] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Library/PostgreSQL/*/bin",
    "/usr/local/bin",
    "/usr/bin",
];

/// Older versions have reached their end of life.
const MIN_MAJOR: u32 = 15;

impl Installation {
    /// Returns the newest server in PATH and in the usual folders.
    fn newest(folder: &Folder, stop: &AtomicBool) -> Result<Installation, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        // PATH often contains links to the programs in another folder.
        let bin = |folder: PathBuf| Some(folder.join("postgres").canonicalize().ok()?.parent()?.to_path_buf());
        let bins = path.chain(USUAL_FOLDERS.into_iter().flat_map(matching)).filter_map(bin);
        let at = |bin: PathBuf| {
            let program = bin.join("postgres");
            let version = bin.join("initdb").exists().then(|| folder.version_of(&program, stop))?;
            Some(Installation { version: version.as_deref().and_then(self::version)?, bin })
        };
        // The first one of equal versions in PATH counts.
        let newest = bins.filter_map(at).min_by_key(|server| Reverse(server.major()));
        newest.filter(|newest| newest.major() >= MIN_MAJOR).ok_or_else(|| {
            Error::new(
                "no PostgreSQL server (15 or later) is installed on this host",
                "install the package postgresql (Debian, Ubuntu) or postgresql-server (Red Hat, FreeBSD), or add the folder with initdb and postgres to PATH",
            )
        })
    }

    /// Returns the major version, or 0 if it is unknown.
    fn major(&self) -> u32 {
        let digits = self.version.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|major| major.parse().ok()).unwrap_or(0)
    }
}

/// Returns the version in `postgres (PostgreSQL) 18.6 (Debian 18.6-1)`.
fn version(text: &str) -> Option<String> {
    Some(text.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?.to_string())
}

/// Returns the folders that match a pattern with at most one `*`.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![pattern.into()] };
    let (folder, prefix) = before.rsplit_once('/').expect("patterns are absolute");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let versions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    versions.map(|entry| entry.path().join(after.trim_start_matches('/'))).collect()
}

/// A folder that only the server's user can access. Dropping it removes it.
struct Folder {
    path: PathBuf,
    /// `None`: as this program
    user: Option<User>,
    /// locked until the folder is removed
    log: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next run tries it again. The standard library follows no symlink, also if another user replaces a directory meanwhile.
        _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Folder {
    /// Creates a folder with an unused name. Returns why that is not possible.
    fn create(base: &Path, user: Option<User>) -> Result<Folder, String> {
        // The hasher of the standard library has a random seed.
        let path = base.join(format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        let log = DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .and_then(|()| new_log(&path, user.as_ref()).inspect_err(|_| _ = std::fs::remove_dir_all(&path)));
        match log {
            Ok(log) => Ok(Folder { path, user, log }),
            Err(error) => Err(format!("could not create {}: {}", path.display(), reason(&error))),
        }
    }

    /// Returns the command of a program of the server, which dies with this program. Another user, who may own it, gets neither this
    /// program's environment nor its terminal: on older kernels a process can type into its terminal. So the terminal's signals do not
    /// reach it, either.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let kept =
            ["PATH", "LD_LIBRARY_PATH", "TZ"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.env_clear().envs(kept).env("LC_ALL", "C").current_dir(&self.path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(user) = &self.user {
            // This also removes root's groups.
            command.uid(user.uid).gid(user.gid);
        }
        let (log, parent) = (self.log.as_raw_fd(), Some(getpid()));
        // SAFETY: the closure only makes system calls, which are allowed between fork and exec, and the log is open. It runs after the
        // change of the user, which would remove the signal.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                // All processes of the server inherit the locked log, so nobody removes the folder before they end.
                rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(log), FdFlags::empty())?;
                #[cfg(target_os = "linux")]
                rustix::process::set_parent_process_death_signal(Some(Signal::QUIT))?;
                // This program may have died before the call.
                if getppid() == parent { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
            });
        }
        command
    }

    /// Returns the output of a program with the option `--version`. A program that hangs, or that writes more than a pipe can hold, is
    /// ended after the time limit. `stop` ends it at once.
    fn version_of(&self, program: &Path, stop: &AtomicBool) -> Option<String> {
        let mut command = self.command(program);
        output(command.arg("--version").stdout(Stdio::piped()), Signal::KILL, &until(stop, PRINT_LIMIT)).ok()
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
fn base(given: &Path, owner: libc::uid_t, has_other_user: bool) -> PathBuf {
    // The server does not run in this program's directory, so the path must be absolute.
    let is_suitable = |path: &PathBuf| !has_other_user && path.as_os_str().len() <= MAX_BASE && is_safe(path, owner);
    let given = given.canonicalize().ok().filter(is_suitable);
    given.or_else(|| Path::new("/tmp").canonicalize().ok()).unwrap_or_else(|| "/tmp".into())
}

/// Removes the abandoned folders of this user in `base`. The next run tries again what cannot be removed.
fn remove_abandoned(base: &Path, owner: libc::uid_t) {
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
    let is_private = |mode: u32| mode & OTHERS_CAN_WRITE == 0 || mode & STICKY != 0;
    base.ancestors()
        .all(|path| path.metadata().is_ok_and(|state| is_private(state.mode()) && [0, owner].contains(&state.uid())))
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

    #[test]
    fn only_the_end_of_a_long_log_is_read() {
        let log = tempfile::NamedTempFile::new().unwrap();
        // The file has a hole, so it takes no space.
        log.as_file().set_len(1 << 40).unwrap();
        log.as_file().write_all_at(b"\nFATAL:  last\n", 1 << 40).unwrap();
        let end = end_of(log.as_file());
        assert_eq!((end.len() as u64, error_message(&end).as_str()), (MAX_MESSAGE_BYTES, "last"));
    }

    #[test]
    fn the_first_error_message_is_found() {
        for (text, why) in [
            ("creating directory ... ok\n", "it ended without an error message"),
            ("x\ninitdb: error: could not write\n", "could not write"),
            ("2026-11-21 UTC [1] LOG:  starting\n2026-11-21 UTC [1] FATAL:  no space\n", "no space"),
        ] {
            assert_eq!(error_message(text), why);
        }
    }

    #[test]
    fn versions_are_parsed() {
        assert_eq!(version("postgres (PostgreSQL) 18.6 (Debian 18.6-1)").as_deref(), Some("18.6"));
        assert_eq!(version("postgres (EnterpriseDB) 16.1"), None);
        for (version, major) in [("18.6", 18), ("19rc1", 19), ("x", 0)] {
            assert_eq!(Installation { version: version.into(), bin: PathBuf::new() }.major(), major);
        }
    }

    #[test]
    fn a_stop_ends_a_program_that_hangs() {
        let never = AtomicBool::new(false);
        let base = tempfile::tempdir().unwrap();
        let server_folder = Folder::create(base.path(), None).unwrap();
        // The shell starts a process, which keeps the pipe open.
        let (folder, start) = (tempfile::tempdir().unwrap(), Instant::now());
        let run = |script: &str, stop: &AtomicBool| {
            let file = folder.path().join("script");
            std::fs::write(&file, script).unwrap();
            let mut shell = server_folder.command(Path::new("/bin/sh"));
            output(shell.arg(file).stdout(Stdio::piped()), Signal::KILL, &until(stop, PRINT_LIMIT)).ok()
        };
        assert_eq!(run("echo x", &never).as_deref(), Some("x\n"));
        assert_eq!(run("exec sleep 1000", &AtomicBool::new(true)), None);
        assert_eq!(run("sleep 20 & echo x", &never).as_deref(), Some("x\n"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !folder.path().join("script.started").exists() {
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(run("sleep 1000 & : > \"$0.started\"; wait", &stop), None);
        });
        assert!(start.elapsed() < END_LIMIT, "{:?}", start.elapsed());
    }

    #[test]
    fn a_star_matches_every_version() {
        let root = tempfile::tempdir().unwrap();
        for version in ["pgsql-15", "pgsql-18", "other"] {
            std::fs::create_dir_all(root.path().join(version)).unwrap();
        }
        let mut found = matching(&format!("{}/pgsql-*/bin", root.path().display()));
        found.sort();
        assert_eq!(found, ["pgsql-15/bin", "pgsql-18/bin"].map(|bin| root.path().join(bin)));
        assert_eq!(matching("/usr/bin"), [Path::new("/usr/bin")]);
    }
}

#[cfg(test)]
mod folder_tests {
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
