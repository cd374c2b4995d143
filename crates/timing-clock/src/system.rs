//! The operating system's clocks, through the C library and past it.

use crate::Clock;

/// A clock of `clock_gettime`, read through the C library as PostgreSQL does: by the vDSO where
/// there is one. Ticks are nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Posix<const ID: libc::clockid_t>;

/// The clock that PostgreSQL reads on this platform.
#[cfg(not(target_vendor = "apple"))]
pub type System = Posix<{ libc::CLOCK_MONOTONIC }>;
/// The clock that PostgreSQL reads on this platform.
#[cfg(target_vendor = "apple")]
pub type System = Posix<{ libc::CLOCK_MONOTONIC_RAW }>;

/// The clock to measure rates against: one that NTP does not slew, where there is one.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub type Reference = Posix<{ libc::CLOCK_MONOTONIC_RAW }>;
/// The clock to measure rates against: this platform has none that NTP leaves alone.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub type Reference = Posix<{ libc::CLOCK_MONOTONIC }>;

/// The name of [`Reference`] as the platform's manual has it.
pub const REFERENCE_NAME: &str = if cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple")) {
    "CLOCK_MONOTONIC_RAW"
} else {
    "CLOCK_MONOTONIC"
};

impl<const ID: libc::clockid_t> Clock for Posix<ID> {
    #[inline(always)]
    fn read(&self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` outlives the call. A clock the kernel lacks leaves it 0; `exists` tells.
        unsafe { libc::clock_gettime(ID, &mut now) };
        nanos(&now)
    }
}

impl<const ID: libc::clockid_t> Posix<ID> {
    /// Whether the kernel has this clock.
    ///
    /// Asked by a system call: the vDSO may not be touched where the counter is denied.
    pub fn exists(&self) -> bool {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` outlives the call.
        unsafe { enter_kernel(ID, &mut now) == 0 }
    }
}

/// A clock of `clock_gettime`, read by a system call: the vDSO is passed by. Ticks are nanoseconds.
///
/// It shows what the vDSO saves, and goes on working where the counter is denied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syscall<const ID: libc::clockid_t>;

/// [`System`], by a system call.
#[cfg(not(target_vendor = "apple"))]
pub type SystemSyscall = Syscall<{ libc::CLOCK_MONOTONIC }>;
/// [`System`], by a system call.
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

#[inline(always)]
fn nanos(t: &libc::timespec) -> u64 {
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// # Safety
/// `now` must be writable.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline(always)]
unsafe fn enter_kernel(id: libc::clockid_t, now: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's promise. The kernel's timespec is libc's on the 64-bit targets we build for.
    unsafe { libc::syscall(libc::SYS_clock_gettime, id, now) as libc::c_int }
}

/// # Safety
/// `now` must be writable.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline(always)]
unsafe fn enter_kernel(id: libc::clockid_t, now: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's promise. Elsewhere the C library alone knows how to enter the kernel.
    unsafe { libc::clock_gettime(id, now) }
}
