//! The operating system's clocks, read through the C library or by system calls.

use crate::Clock;

/// A clock of `clock_gettime`, read through the C library as PostgreSQL does. The C library uses the vDSO if there is
/// one. Ticks are nanoseconds. A clock that the kernel does not have always reads 0: see [`exists`](Posix::exists).
#[derive(Clone, Copy, Debug, Default)]
pub struct Posix<const ID: libc::clockid_t>;

/// The clock that PostgreSQL reads on this platform.
#[cfg(not(target_vendor = "apple"))]
pub type System = Posix<{ libc::CLOCK_MONOTONIC }>;
/// The clock that PostgreSQL reads on this platform.
#[cfg(target_vendor = "apple")]
pub type System = Posix<{ libc::CLOCK_MONOTONIC_RAW }>;

/// The reference for measured rates. NTP does not adjust it.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub type Reference = Posix<{ libc::CLOCK_MONOTONIC_RAW }>;
/// The reference for measured rates. NTP adjusts every clock of this platform.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub type Reference = Posix<{ libc::CLOCK_MONOTONIC }>;

/// The name of [`Reference`] in the platform's manual.
pub const REFERENCE_NAME: &str = if cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple")) {
    "CLOCK_MONOTONIC_RAW"
} else {
    "CLOCK_MONOTONIC"
};

impl<const ID: libc::clockid_t> Clock for Posix<ID> {
    #[inline(always)]
    fn read(&self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` outlives the call. It stays 0 if the kernel does not have this clock; see `exists`.
        unsafe { libc::clock_gettime(ID, &mut now) };
        nanos(&now)
    }
}

impl<const ID: libc::clockid_t> Posix<ID> {
    /// Returns whether the kernel has this clock.
    ///
    /// This makes a system call, because the vDSO's clock ends the process if the counter is denied.
    pub fn exists(&self) -> bool {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` outlives the call.
        unsafe { enter_kernel(ID, &mut now) == 0 }
    }
}

/// A clock of `clock_gettime`, read by a system call and not by the vDSO. Ticks are nanoseconds.
///
/// Compare it with [`Posix`] to see how much time the vDSO saves. It also works if the counter is denied. A clock that the
/// kernel does not have always reads 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syscall<const ID: libc::clockid_t>;

/// [`System`], read by a system call.
#[cfg(not(target_vendor = "apple"))]
pub type SystemSyscall = Syscall<{ libc::CLOCK_MONOTONIC }>;
/// [`System`], read by a system call.
#[cfg(target_vendor = "apple")]
pub type SystemSyscall = Syscall<{ libc::CLOCK_MONOTONIC_RAW }>;

impl<const ID: libc::clockid_t> Clock for Syscall<ID> {
    #[inline(always)]
    fn read(&self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` outlives the call.
        unsafe { enter_kernel(ID, &mut now) };
        nanos(&now)
    }
}

/// Returns the time in nanoseconds.
#[inline(always)]
fn nanos(t: &libc::timespec) -> u64 {
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Reads the clock `id` into `now`. Returns 0 on success.
///
/// # Safety
/// `now` must be writable.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline(always)]
unsafe fn enter_kernel(id: libc::clockid_t, now: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller guarantees that `now` is writable. On 64-bit targets the kernel's timespec is libc's.
    unsafe { libc::syscall(libc::SYS_clock_gettime, id, now) as libc::c_int }
}

/// Reads the clock `id` into `now`. Returns 0 on success.
///
/// # Safety
/// `now` must be writable.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline(always)]
unsafe fn enter_kernel(id: libc::clockid_t, now: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller guarantees that `now` is writable. On these systems only the C library makes system calls.
    unsafe { libc::clock_gettime(id, now) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_nanoseconds_are_added() {
        assert_eq!(nanos(&libc::timespec { tv_sec: 2, tv_nsec: 5 }), 2_000_000_005);
    }

    #[test]
    fn the_vdso_and_the_system_call_read_the_same_clock() {
        let (vdso, system_call) = (System::default(), SystemSyscall::default());
        let readings = [system_call.read(), vdso.read(), system_call.read(), vdso.read()];
        assert!(readings[0] > 1 && readings.is_sorted() && readings[0] < readings[3], "{readings:?}");
    }

    #[test]
    fn an_unknown_clock_does_not_exist() {
        assert!(System::default().exists());
        assert!(!Posix::<1000>.exists());
    }
}
