//! The functions of `affinity` on systems that have no API to pin threads.

use std::io;

/// No value of this type exists.
#[derive(Debug)]
pub enum Pinned {}

/// Returns an error.
pub fn allowed() -> io::Result<Vec<usize>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "threads cannot be pinned to CPUs on this system"))
}

impl Pinned {
    /// Returns an error.
    pub fn to(_cpu: usize) -> io::Result<Pinned> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the result.
    pub fn if_still_pinned<T>(&self, result: T) -> io::Result<T> {
        Ok(result)
    }
}
