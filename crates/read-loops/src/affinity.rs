//! Pins a thread to a CPU. Only Linux can do that.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Pins the current thread to one CPU. Dropping this value restores the previous set of CPUs.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
    cpu: usize,
}

/// Returns the CPUs that this thread may use.
///
/// The set has room for 1024 CPUs. Kernels with more CPUs return an error.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

impl Pinned {
    /// Moves this thread to `cpu`.
    pub fn to(cpu: usize) -> io::Result<Pinned> {
        let before = sched_getaffinity(None)?;
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut only = CpuSet::new();
        only.set(cpu);
        // The kernel returns EINVAL if the set has no CPU that is online and allowed.
        sched_setaffinity(None, &only).map_err(|error| match error {
            Errno::INVAL => io::Error::other("the CPU is offline, or this process may not use it"),
            error => error.into(),
        })?;
        Ok(Pinned { before, cpu })
    }

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
        let is_pinned = rc == 0 && cpu as usize == self.cpu;
        is_pinned.then_some(result).ok_or_else(|| io::Error::other("the CPU went offline during the measurement"))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // This fails if all previous CPUs are offline now. Then the kernel has already extended the set.
        _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
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
