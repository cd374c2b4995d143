//! Users and containers that may not switch.

use super::{CURRENT, Switchable, clocksource, current, parts};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Asserts that the command is refused for the given reason and changes nothing.
fn assert_not_permitted(mut command: Command, host: &Switchable, reason: &str) {
    let output = match command.output() {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return eprintln!("SKIPPED: this process may not run the program as another user or with a read-only /sys");
        }
        output => output.unwrap(),
    };
    let (status, stdout, stderr) = parts(output);
    assert_eq!((status, stdout.as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains(&format!("cannot write {CURRENT}")) && stderr.contains(reason), "{stderr}");
    assert_eq!(current(), host.old);
}

#[test]
fn users_other_than_root_are_refused() {
    let Some(host) = Switchable::new() else { return };
    let original = clocksource(&["use", &host.other, "--for", "1"]);
    // Other users cannot run a program in the home directory of root.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("pg_timing");
    // Another process copies it. A child that another thread forks now would hold a descriptor of ours, and the kernel does
    // not run a file that is open for writing (ETXTBSY).
    assert!(Command::new("cp").args([original.get_program(), program.as_os_str()]).status().unwrap().success());
    let mut command = Command::new(program);
    command.args(original.get_args()).uid(65534);
    assert_not_permitted(command, &host, "only root may");
}

#[test]
fn read_only_sysfs_is_refused() {
    let Some(host) = Switchable::new() else { return };
    let mut command = clocksource(&["use", &host.other, "--for", "1"]);
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(make_sys_read_only) };
    assert_not_permitted(command, &host, "read-only");
}

/// Enters a mount namespace with a read-only /sys, as in a container.
fn make_sys_read_only() -> std::io::Result<()> {
    let check = |status| if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    let (sys, none) = (c"/sys".as_ptr(), std::ptr::null());
    // SAFETY: plain system calls on constants.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        check(libc::mount(c"none".as_ptr(), sys, none, libc::MS_PRIVATE, none.cast()))?;
        check(libc::mount(none, sys, none, libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, none.cast()))
    }
}
