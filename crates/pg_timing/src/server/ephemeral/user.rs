//! The user of the temporary server, because PostgreSQL refuses to run as root.

use crate::error::Error;
use std::ffi::CString;

/// A user who is not root.
pub struct User {
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
}

impl User {
    /// Returns the user for the server, or `None` if this process is not root. Then the server runs as this process's
    /// user.
    pub fn for_server() -> Result<Option<User>, Error> {
        // SAFETY: it only returns a number.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let sudo = std::env::var("SUDO_USER").ok();
        ["postgres"].into_iter().chain(sudo.as_deref()).chain(["nobody"]).find_map(User::named).map(Some).ok_or_else(
            || {
                Error::new(
                    "PostgreSQL refuses to run as root, and no user postgres, $SUDO_USER or nobody was found",
                    "run pg_timing as an ordinary user",
                )
            },
        )
    }

    fn named(name: &str) -> Option<User> {
        let name = CString::new(name).ok()?;
        // SAFETY: the result is copied at once, and no other thread calls it.
        let entry = unsafe { libc::getpwnam(name.as_ptr()).as_ref()? };
        (entry.pw_uid != 0).then_some(User { uid: entry.pw_uid, gid: entry.pw_gid })
    }

    /// Changes the user of this process permanently.
    pub fn apply(&self) -> std::io::Result<()> {
        // SAFETY: the list of groups is empty, and the other calls use no memory.
        let done = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0 && libc::setgid(self.gid) == 0 && libc::setuid(self.uid) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}
