//! Writes the files of a tree into a directory of ours, also where another user changes it while we write.

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Result, Write};
use std::os::fd::{AsFd, OwnedFd};

/// The files of a tree: absolute path on the machine, and contents.
#[derive(Default)]
pub struct Files(Vec<(String, String)>);

impl Files {
    pub fn add(&mut self, path: &str, text: impl Into<String>) {
        self.0.push((path.into(), text.into()));
    }

    /// Writes new files into a directory of ours. Symlinks are not followed.
    pub fn write(&self, root: &OwnedFd) -> Result<()> {
        for (path, text) in &self.0 {
            let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            let Some(name) = parts.pop() else { continue };
            let mut parent = root.try_clone()?;
            for part in parts {
                match rustix::fs::mkdirat(&parent, part, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => parent = open(&parent, part)?,
                    Err(error) => return Err(error.into()),
                }
            }
            let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&parent, name, new, Mode::RUSR | Mode::WUSR)?;
            File::from(file).write_all(text.as_bytes())?;
        }
        Ok(())
    }

    /// Removes the files that were written, and then empty directories, without following symlinks.
    pub fn remove(&self, root: &OwnedFd) {
        for (path, _) in &self.0 {
            let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            for length in (1..=parts.len()).rev() {
                let Some((name, above)) = parts[..length].split_last() else { continue };
                let parent = above
                    .iter()
                    .try_fold(root.try_clone(), |parent, part| Ok::<_, ()>(open(&parent.map_err(|_| ())?, *part)));
                let Ok(Ok(parent)) = parent else { continue };
                let kind = if length == parts.len() { AtFlags::empty() } else { AtFlags::REMOVEDIR };
                _ = rustix::fs::unlinkat(&parent, *name, kind);
            }
        }
    }
}

/// Opens a directory, but not through a symlink.
pub fn open(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}
