//! Temporary servers whose initdb fails.

use super::{pg_timing, run};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A directory with programs that look like the newest PostgreSQL. The server's user can write into it.
fn installation(initdb: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let initdb = format!("{initdb}\npwd > '{0}/new' && mv '{0}/new' '{0}/folder'; exit 1", dir.path().display());
    for (name, script) in [("initdb", initdb.as_str()), ("postgres", "echo 'postgres (PostgreSQL) 999.1'")] {
        let program = dir.path().join(name);
        let text = dir.path().join("text");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Another process writes the program: see limits.rs.
        assert!(Command::new("install").args(["-m", "777"]).args([&text, &program]).status().unwrap().success());
    }
    dir
}

/// Runs the program with this installation. Returns its exit status and stderr.
fn explain(installation: &Path) -> (i32, String) {
    let path = std::env::join_paths([installation, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let (status, _, stderr) = run(pg_timing().args(["explain", "--ephemeral", "-c", "SELECT 1"]).env("PATH", path));
    (status, stderr)
}

/// Returns the folder of the temporary server, as soon as initdb has run in it.
fn folder(installation: &Path) -> PathBuf {
    let start = Instant::now();
    loop {
        if let Ok(folder) = std::fs::read_to_string(installation.join("folder")) {
            return folder.trim().into();
        }
        assert!(start.elapsed() < super::TIMEOUT, "initdb did not run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// initdb leaves a process.
#[test]
fn the_folder_is_locked_until_it_is_removed() {
    let installation = installation("sleep 1000 > /dev/null 2>&1 &");
    std::thread::scope(|scope| {
        let program = scope.spawn(|| explain(installation.path()));
        let log = File::open(folder(installation.path()).join("pg_timing.log"));
        // On a slow host the folder is already removed.
        while let Ok(log) = &log
            && log.metadata().unwrap().nlink() > 0
        {
            let lock = rustix::fs::flock(log, rustix::fs::FlockOperation::NonBlockingLockExclusive);
            assert!(lock.is_err() || log.metadata().unwrap().nlink() == 0, "another run could remove the folder, too");
            std::thread::sleep(Duration::from_millis(5));
        }
        let (status, stderr) = program.join().unwrap();
        assert!(status != 0 && stderr.contains("PostgreSQL 999.1"), "{status} {stderr}");
    });
    assert!(!folder(installation.path()).exists());
}

/// Only root can remove such a directory.
#[test]
fn the_program_removes_what_the_servers_user_cannot_remove() {
    let installation = installation("mkdir -p data/x; chmod 0 data");
    let (status, stderr) = explain(installation.path());
    assert!(status != 0 && stderr.contains("PostgreSQL 999.1"), "{status} {stderr}");
    let folder = folder(installation.path());
    if rustix::process::geteuid().is_root() {
        assert!(!folder.exists());
        return;
    }
    assert!(folder.join("pg_timing.log").exists(), "a later run tries it again");
    std::fs::set_permissions(folder.join("data"), Permissions::from_mode(0o700)).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
