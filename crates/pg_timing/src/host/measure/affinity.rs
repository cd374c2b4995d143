//! Which CPU a thread runs on.

/// Keeps this thread on one CPU for as long as it lives, then gives it back the CPUs it had.
#[derive(Debug)]
pub struct Pinned {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    before: libc::cpu_set_t,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    cpu: usize,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use super::Pinned;
    use std::io;

    /// The CPUs this thread may use. Kernels with more than 1024 CPUs refuse the fixed-size set.
    pub fn allowed() -> io::Result<Vec<usize>> {
        let set = get()?;
        // SAFETY: the set is initialised, and every index is below its size.
        Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
    }

    fn get() -> io::Result<libc::cpu_set_t> {
        // SAFETY: an all-zero set is a valid, empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is writable and its size is given.
        match unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } {
            0 => Ok(set),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn set(set: &libc::cpu_set_t) -> io::Result<()> {
        // SAFETY: `set` is readable and its size is given.
        match unsafe { libc::sched_setaffinity(0, size_of_val(set), set) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    impl Pinned {
        /// Moves this thread to `cpu`.
        pub fn to(cpu: usize) -> io::Result<Pinned> {
            let before = get()?;
            if cpu >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
            // SAFETY: an all-zero set is a valid, empty one, and `cpu` is below its size.
            let mut only: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            unsafe { libc::CPU_SET(cpu, &mut only) };
            // A set without one CPU that is online and allowed is refused so.
            set(&only).map_err(|e| match e.raw_os_error() {
                Some(libc::EINVAL) => io::Error::other("it is offline, or not for this process"),
                _ => e,
            })?;
            Ok(Pinned { before, cpu })
        }
    }

    impl Pinned {
        /// `result`, if the thread still is where it was put: a CPU that goes offline loses its
        /// threads to others, and what they then read is not its clock.
        pub fn held<T>(&self, result: T) -> io::Result<T> {
            let mut cpu: libc::c_uint = 0;
            // By a system call: the vDSO may not be touched where the counter is denied.
            // SAFETY: `cpu` is writable, and the kernel ignores the other two.
            let rc = unsafe {
                libc::syscall(libc::SYS_getcpu, &mut cpu, std::ptr::null_mut::<u8>(), std::ptr::null_mut::<u8>())
            };
            match rc == 0 && cpu as usize == self.cpu {
                true => Ok(result),
                false => Err(io::Error::other("it went offline meanwhile")),
            }
        }
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            // The old CPUs may have gone offline: then the kernel has widened the set itself.
            _ = set(&self.before);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::allowed;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod elsewhere {
    use super::Pinned;
    use std::io;

    /// Not asked on this system.
    pub fn allowed() -> io::Result<Vec<usize>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "CPUs cannot be chosen on this system"))
    }

    impl Pinned {
        /// Not possible on this system.
        pub fn to(_cpu: usize) -> io::Result<Pinned> {
            Err(io::Error::new(io::ErrorKind::Unsupported, "CPUs cannot be chosen on this system"))
        }

        /// Never asked on this system.
        pub fn held<T>(&self, result: T) -> io::Result<T> {
            Ok(result)
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use elsewhere::allowed;
