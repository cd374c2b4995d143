//! Pins a thread to a CPU.

/// Pins the current thread to one CPU. Dropping this value restores the previous set of CPUs.
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

    /// Returns the CPUs that this thread may use.
    ///
    /// The set has room for 1024 CPUs. Kernels with more CPUs return an error.
    pub fn allowed() -> io::Result<Vec<usize>> {
        let set = current_set()?;
        // SAFETY: the set is initialized, and every index is below its size.
        Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
    }

    fn current_set() -> io::Result<libc::cpu_set_t> {
        // SAFETY: an all-zero set is a valid empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is writable and its size is given.
        match unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } {
            0 => Ok(set),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn apply(set: &libc::cpu_set_t) -> io::Result<()> {
        // SAFETY: `set` is readable and its size is given.
        match unsafe { libc::sched_setaffinity(0, size_of_val(set), set) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    impl Pinned {
        /// Moves this thread to `cpu`.
        pub fn to(cpu: usize) -> io::Result<Pinned> {
            let before = current_set()?;
            if cpu >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
            // SAFETY: an all-zero set is a valid empty set.
            let mut only: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: `only` is initialized, and `cpu` is below its size.
            unsafe { libc::CPU_SET(cpu, &mut only) };
            // The kernel returns EINVAL if the set has no CPU that is online and allowed.
            apply(&only).map_err(|e| match e.raw_os_error() {
                Some(libc::EINVAL) => io::Error::other("the CPU is offline, or this process may not use it"),
                _ => e,
            })?;
            Ok(Pinned { before, cpu })
        }
    }

    impl Pinned {
        /// Returns `result` if the thread is still on its CPU.
        ///
        /// If a CPU goes offline, the kernel moves its threads to other CPUs. Then a thread reads another CPU's clock.
        pub fn if_still_pinned<T>(&self, result: T) -> io::Result<T> {
            let mut cpu: libc::c_uint = 0;
            // Make a system call, because the vDSO's getcpu ends the process if the counter is denied.
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
            // This fails if all previous CPUs are offline now. Then the kernel has already extended the set.
            _ = apply(&self.before);
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

        /// Returns `result`. On this system no value of this type exists.
        pub fn if_still_pinned<T>(&self, result: T) -> io::Result<T> {
            Ok(result)
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use unsupported::allowed;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn current_cpu() -> usize {
        // SAFETY: sched_getcpu() only returns the CPU's number.
        unsafe { libc::sched_getcpu() as usize }
    }

    /// Returns the CPUs of a list like `0-3,8`.
    fn cpus(list: &str) -> Vec<usize> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            first.parse::<usize>().unwrap()..=last.parse().unwrap()
        };
        list.trim().split(',').flat_map(range).collect()
    }

    #[test]
    fn the_allowed_cpus_are_those_of_the_kernel() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        assert_eq!(allowed().unwrap(), cpus(list));
    }

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_until_the_pin_is_dropped() {
        let before = allowed().unwrap();
        assert!(!before.is_empty());
        for &cpu in &before {
            let pinned = Pinned::to(cpu).unwrap();
            assert_eq!((allowed().unwrap(), current_cpu()), (vec![cpu], cpu));
            assert_eq!(pinned.if_still_pinned(7).unwrap(), 7);
            drop(pinned);
            assert_eq!(allowed().unwrap(), before);
        }
    }

    #[test]
    fn a_result_from_another_cpu_is_an_error() {
        let cpu = allowed().unwrap()[0];
        let mut pinned = Pinned::to(cpu).unwrap();
        pinned.cpu = cpu + 1;
        let error = pinned.if_still_pinned(7).unwrap_err();
        assert_eq!(error.to_string(), "the CPU went offline during the measurement");
    }

    #[test]
    fn an_unusable_cpu_is_an_error() {
        let last = libc::CPU_SETSIZE as usize - 1;
        if !allowed().unwrap().contains(&last) {
            let error = Pinned::to(last).unwrap_err();
            assert_eq!(error.to_string(), "the CPU is offline, or this process may not use it");
        }
        assert_eq!(Pinned::to(last + 1).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
}
