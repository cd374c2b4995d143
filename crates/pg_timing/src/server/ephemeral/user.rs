//! Who the server runs as: PostgreSQL refuses root.

use crate::error::Error;
use std::ffi::CString;

pub struct User {
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
}

impl User {
    /// `None` if we are an ordinary user: then the server is one's own.
    pub fn for_server() -> Result<Option<User>, Error> {
        // SAFETY: it only asks.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let sudo = std::env::var("SUDO_USER").ok();
        ["postgres"]
            .into_iter()
            .chain(sudo.as_deref())
            .chain(["nobody"])
            .find_map(User::named)
            .map(Some)
            .ok_or_else(|| Error::new("PostgreSQL does not run as root, and there is no other user", "run this as one"))
    }

    fn named(name: &str) -> Option<User> {
        let name = CString::new(name).ok()?;
        // SAFETY: the answer is copied at once, and no other thread asks.
        let entry = unsafe { libc::getpwnam(name.as_ptr()).as_ref()? };
        (entry.pw_uid != 0).then_some(User { uid: entry.pw_uid, gid: entry.pw_gid })
    }

    /// For good: this process is that user's from now on.
    pub fn become_it(&self) -> std::io::Result<()> {
        // SAFETY: none of it touches memory but for the list, which is empty.
        let done = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0 && libc::setgid(self.gid) == 0 && libc::setuid(self.uid) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}
