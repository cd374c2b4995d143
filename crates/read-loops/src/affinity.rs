//! Pins a thread to a CPU.

/// Pins the current thread to one CPU. Dropping it restores the CPUs that the thread had before.
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

    /// Returns the CPUs that this thread may use. Kernels with more than 1024 CPUs refuse the fixed-size set.
    pub fn allowed() -> io::Result<Vec<usize>> {
        let set = get()?;
        // SAFETY: the set is initialized, and every index is below its size.
        Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
    }

    fn get() -> io::Result<libc::cpu_set_t> {
        // SAFETY: an all-zero set is a valid empty set.
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
            // SAFETY: an all-zero set is a valid empty set, and `cpu` is below its size.
            let mut only: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            unsafe { libc::CPU_SET(cpu, &mut only) };
            // The kernel refuses a set without an online and allowed CPU.
            set(&only).map_err(|e| match e.raw_os_error() {
                Some(libc::EINVAL) => io::Error::other("the CPU is offline, or this process may not use it"),
                _ => e,
            })?;
            Ok(Pinned { before, cpu })
        }
    }

    impl Pinned {
        /// Returns `result` if the thread is still on its CPU.
        ///
        /// The threads of a CPU that goes offline move to other CPUs. Then they read another CPU's clock.
        pub fn if_still_pinned<T>(&self, result: T) -> io::Result<T> {
            let mut cpu: libc::c_uint = 0;
            // A system call, because the vDSO ends the process if the counter is denied.
            // SAFETY: `cpu` is writable, and the kernel accepts null for the other two.
            let rc = unsafe {
                libc::syscall(libc::SYS_getcpu, &mut cpu, std::ptr::null_mut::<u8>(), std::ptr::null_mut::<u8>())
            };
            match rc == 0 && cpu as usize == self.cpu {
                true => Ok(result),
                false => Err(io::Error::other("the CPU went offline during the measurement")),
            }
        }
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            // This fails if the old CPUs went offline. Then the kernel has already extended the set.
            _ = set(&self.before);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::allowed;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod unsupported {
    use super::Pinned;
    use std::io;

    /// Returns an error: this system has no API to pin threads.
    pub fn allowed() -> io::Result<Vec<usize>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "threads cannot be pinned to CPUs on this system"))
    }

    impl Pinned {
        /// Returns an error: this system has no API to pin threads.
        pub fn to(_cpu: usize) -> io::Result<Pinned> {
            Err(io::Error::new(io::ErrorKind::Unsupported, "threads cannot be pinned to CPUs on this system"))
        }

        /// Returns `result`. Nobody can be pinned on this system.
        pub fn if_still_pinned<T>(&self, result: T) -> io::Result<T> {
            Ok(result)
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use unsupported::allowed;
