//! Where the clock source is set: a file of sysfs, or FreeBSD's sysctl.

use super::{NotDone, System};
use crate::host::facts::{CURRENT_CLOCKSOURCE, Host, set_timecounter};
use crate::human::reason;
use crate::report::Clocksource;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// The kernel's clock source as something that can be looked at and set.
pub trait Setting {
    fn look(&self) -> Clocksource;
    /// Makes sure that it may be set, and by nobody else at the same time, without setting it.
    fn claim(&self) -> io::Result<Claim>;
    fn set(&self, name: &str) -> io::Result<()>;
    fn system(&self) -> System;
}

/// The claim on a [`Setting`], for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _locked: Option<File>,
}

impl Setting for Host {
    fn look(&self) -> Clocksource {
        self.clocksource()
    }

    fn claim(&self) -> io::Result<Claim> {
        if self.system() == System::FreeBsd {
            // The sysctl asks for root at the write and not before; a try would count as a choice.
            return if is_root() { Ok(Claim { _locked: None }) } else { Err(io::ErrorKind::PermissionDenied.into()) };
        }
        let file = OpenOptions::new().write(true).open(self.file(CURRENT_CLOCKSOURCE)?)?;
        lock(&file)?;
        Ok(Claim { _locked: Some(file) })
    }

    fn set(&self, name: &str) -> io::Result<()> {
        match self.system() {
            // Truncated for the sake of plain files; one write, for the kernel takes each for a name.
            System::Linux => OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(self.file(CURRENT_CLOCKSOURCE)?)?
                .write_all(format!("{name}\n").as_bytes()),
            System::FreeBsd => set_timecounter(name),
        }
    }

    fn system(&self) -> System {
        System::of(self)
    }
}

/// Two at a time would each put back what the other has set.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` lives.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::WouldBlock => Err(e),
        // A file system without locks: it worked without them before.
        _ => Ok(()),
    }
}

fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Why [`Setting::claim`] was refused, and which right is missing.
pub fn refused(error: &io::Error, system: System, name: &str) -> NotDone {
    refused_to(error, system, name, is_root())
}

fn refused_to(error: &io::Error, system: System, name: &str, root: bool) -> NotDone {
    if error.kind() == io::ErrorKind::WouldBlock {
        return NotDone::new(
            "another pg_timing is switching the clock source at this moment",
            "wait until it has put it back",
        );
    }
    let place = match system {
        System::Linux => CURRENT_CLOCKSOURCE,
        System::FreeBsd => "the sysctl kern.timecounter.hardware",
    };
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied if !root => {
            format!("only root may switch the clock source: sudo pg_timing clocksource use {name}")
        }
        io::ErrorKind::PermissionDenied => {
            "this root may not (a container, or a security module): switch on the host itself".into()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "/sys is mounted read-only here, as in most containers: switch on the host itself".into()
        }
        _ => format!("by hand it would be, as root: {}", system.set(name)),
    };
    NotDone::new(format!("may not write {place}: {}", reason(error)), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_right_is_named() {
        let hint = |code: i32, root| refused_to(&io::Error::from_raw_os_error(code), System::Linux, "tsc", root).hint;
        assert!(hint(libc::EACCES, false).contains("only root may"));
        assert!(hint(libc::EACCES, true).contains("container"));
        assert!(hint(libc::EPERM, true).contains("container"));
        assert!(hint(libc::EROFS, true).contains("read-only"));
        assert!(hint(libc::EISDIR, true).contains("echo tsc > /sys"));
        let told = refused_to(&io::Error::from_raw_os_error(libc::EROFS), System::Linux, "tsc", true).what;
        assert_eq!(told, format!("may not write {CURRENT_CLOCKSOURCE}: Read-only file system"));
    }

    #[test]
    fn one_at_a_time() {
        let root = super::super::tests::tree("tsc", "tsc hpet");
        let host = Host::captured(root.path().into());
        let first = host.claim().unwrap();
        let second = host.claim().unwrap_err();
        assert!(refused(&second, System::Linux, "tsc").what.contains("another pg_timing"));
        drop(first);
        host.claim().unwrap();
    }
}
