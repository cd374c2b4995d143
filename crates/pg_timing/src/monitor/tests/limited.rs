//! Runs a test in a process that cannot write large files, as on a full disk.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::process::Command;

const CHILD: &str = "PG_TIMING_TEST_CHILD";

/// Calls `test` in another process, in which files have at most `bytes`. A longer write is cut first, and then fails.
/// `name` is that of the calling test.
pub fn in_process_with_file_limit(name: &str, bytes: u64, test: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: the signal would end this process before the write fails.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum: None }).unwrap();
        test();
        return;
    }
    let child =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}
