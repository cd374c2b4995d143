//! Reads and writes the kernel's clock source: a file in sysfs, or FreeBSD's sysctl.

use crate::error::Error;
use crate::host::facts::{CURRENT_CLOCKSOURCE, Host, set_timecounter};
use crate::human::reason;
use crate::output_file::is_root;
use crate::report::{Clocksource, System};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// The kernel's clock source.
pub trait Setting {
    /// Reads the current and the available clock sources.
    fn read(&self) -> Clocksource;
    /// Checks the permission to write, and locks out other pg_timing processes.
    fn lock(&self) -> io::Result<Lock>;
    fn write(&self, name: &str) -> io::Result<()>;
    fn system(&self) -> System;
}

/// The lock on a [`Setting`]. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    file: Option<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Closing the file is not enough: a child process that is just starting has it open, too.
            _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
    }
}

impl Setting for Host {
    fn read(&self) -> Clocksource {
        self.clocksource()
    }

    fn lock(&self) -> io::Result<Lock> {
        if self.system() == System::FreeBsd {
            // The sysctl checks for root only at a write, and a write would switch.
            return if is_root() { Ok(Lock { file: None }) } else { Err(io::ErrorKind::PermissionDenied.into()) };
        }
        let file = OpenOptions::new().write(true).open(self.file(CURRENT_CLOCKSOURCE))?;
        lock_exclusively(&file)?;
        Ok(Lock { file: Some(file) })
    }

    fn write(&self, name: &str) -> io::Result<()> {
        match self.system() {
            // Truncate because tests use plain files. Use one write, because the kernel takes each write as a name.
            System::Linux => OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(self.file(CURRENT_CLOCKSOURCE))?
                .write_all(format!("{name}\n").as_bytes()),
            System::FreeBsd => set_timecounter(name),
        }
    }

    fn system(&self) -> System {
        if self.sysctls().is_some() { System::FreeBsd } else { System::Linux }
    }
}

/// Locks the file. Two processes at a time would restore each other's clock source.
fn lock_exclusively(file: &File) -> io::Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK.into()),
        // If the file system has no locks, continue without.
        _ => Ok(()),
    }
}

/// Returns the error for a failed [`Setting::lock`], with the missing permission.
pub fn not_permitted(error: &io::Error, system: System, name: &str) -> Error {
    not_permitted_to(error, system, name, is_root())
}

fn not_permitted_to(error: &io::Error, system: System, name: &str, is_root: bool) -> Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        return Error::new(
            "another pg_timing is switching the clock source",
            "wait until it has restored the clock source",
        );
    }
    let place = match system {
        System::Linux => CURRENT_CLOCKSOURCE,
        System::FreeBsd => "the sysctl kern.timecounter.hardware",
    };
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied if !is_root => {
            format!("only root may switch the clock source: sudo pg_timing clocksource use {name}")
        }
        io::ErrorKind::PermissionDenied => {
            "a container or a security module denies it even to root: run this on the host itself".into()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "/sys is mounted read-only, as in most containers: run this on the host itself".into()
        }
        _ => format!("to switch by hand, as root: {}", system.switch_command(name)),
    };
    Error::new(format!("cannot write {place}: {}", reason(error)), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_permission_is_named() {
        let hint =
            |code: i32, root| not_permitted_to(&io::Error::from_raw_os_error(code), System::Linux, "tsc", root).hint;
        assert!(hint(libc::EACCES, false).contains("only root may"));
        assert!(hint(libc::EACCES, true).contains("container"));
        assert!(hint(libc::EPERM, true).contains("container"));
        assert!(hint(libc::EROFS, true).contains("read-only"));
        assert!(hint(libc::EISDIR, true).contains("echo tsc > /sys"));
        let what = not_permitted_to(&io::Error::from_raw_os_error(libc::EROFS), System::Linux, "tsc", true).what;
        assert_eq!(what, format!("cannot write {CURRENT_CLOCKSOURCE}: Read-only file system"));
    }

    #[test]
    fn only_one_process_can_hold_the_lock() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(CURRENT_CLOCKSOURCE.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "tsc\n").unwrap();
        let host = Host::captured(root.path().into());
        let first = host.lock().unwrap();
        let second = host.lock().unwrap_err();
        assert!(not_permitted(&second, System::Linux, "tsc").what.contains("another pg_timing"));
        // A child process that is just starting has the same files.
        let _child = first.file.as_ref().unwrap().try_clone().unwrap();
        drop(first);
        host.lock().unwrap();
    }
}
