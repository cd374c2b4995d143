//! The CPU's counter: the time stamp counter (TSC) on x86, and the generic timer's CNTVCT on AArch64.

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{Cntvct, IsbCntvct};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{LfenceRdtsc, Rdtsc, Rdtscp};

/// The counter with the cheapest read instruction of this architecture.
#[cfg(target_arch = "x86_64")]
pub type Counter = Rdtsc;
/// The counter with the cheapest read instruction of this architecture.
#[cfg(target_arch = "aarch64")]
pub type Counter = Cntvct;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("timing-clock supports only the counters of x86_64 and AArch64");
#[cfg(not(unix))]
compile_error!("timing-clock reads clocks with clock_gettime: Linux, FreeBSD, macOS and other Unix systems only");

/// The reason why a counter cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// `prctl(PR_SET_TSC, PR_TSC_SIGSEGV)` is set for this thread, so a read ends the process.
    #[error("this thread may not read the counter (PR_SET_TSC)")]
    Denied,
    /// The CPU does not have this instruction.
    #[error("this CPU has no {0}")]
    NoInstruction(&'static str),
}

/// Returns an error if this thread must not read the counter. The setting belongs to the thread: a clock that was created
/// in a permitted thread must not be read in a thread that is denied.
///
/// Call this function before the first read, because a read of a denied counter causes SIGSEGV. The vDSO reads the same
/// counter. So `clock_gettime` and `std::time::Instant` end the process, too. Clocks that make system calls still work.
pub fn permitted() -> Result<(), Refused> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut mode: libc::c_int = 0;
        // SAFETY: PR_GET_TSC writes one int. Kernels without it (AArch64 before 6.12) return an error and do not change
        // `mode`. They cannot deny the counter.
        let rc = unsafe { libc::prctl(libc::PR_GET_TSC, &mut mode as *mut libc::c_int) };
        if rc == 0 && mode == libc::PR_TSC_SIGSEGV {
            return Err(Refused::Denied);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_text() {
        assert_eq!(Refused::Denied.to_string(), "this thread may not read the counter (PR_SET_TSC)");
        assert_eq!(Refused::NoInstruction("RDTSCP").to_string(), "this CPU has no RDTSCP");
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn prctl_denies_and_permits_the_counter() {
        // The setting belongs to the thread, and not to the process.
        let set = |mode: libc::c_int| {
            // SAFETY: PR_SET_TSC takes one int. This thread reads no clock while the counter is denied.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_TSC, mode) }, 0);
            permitted()
        };
        let thread = std::thread::spawn(move || [libc::PR_TSC_SIGSEGV, libc::PR_TSC_ENABLE].map(set));
        assert_eq!(thread.join().unwrap(), [Err(Refused::Denied), Ok(())]);
    }
}
