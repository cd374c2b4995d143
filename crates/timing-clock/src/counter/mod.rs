//! The CPU's own counter: the TSC on x86, the generic timer's CNTVCT on AArch64.

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{Cntvct, IsbCntvct};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{LfenceRdtsc, Rdtsc, Rdtscp};

/// The cheapest counter of this architecture.
#[cfg(target_arch = "x86_64")]
pub type Counter = Rdtsc;
/// The cheapest counter of this architecture.
#[cfg(target_arch = "aarch64")]
pub type Counter = Cntvct;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("timing-clock knows the counters of x86_64 and AArch64 only");

/// Why a counter cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// `prctl(PR_SET_TSC, PR_TSC_SIGSEGV)` is in force: a read would kill the process.
    Denied,
    /// The CPU does not have this instruction.
    NoInstruction(&'static str),
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refused::Denied => f.write_str("reading it is denied to this process (PR_SET_TSC)"),
            Refused::NoInstruction(name) => write!(f, "this CPU has no {name}"),
        }
    }
}

impl std::error::Error for Refused {}

/// Whether this thread may read the counter.
///
/// Ask before the first read: where it is denied, a read is a SIGSEGV. The vDSO
/// reads the same counter, so there `clock_gettime` and `std::time::Instant`
/// kill the process too; clocks that enter the kernel go on working.
pub fn permitted() -> Result<(), Refused> {
    match denied() {
        true => Err(Refused::Denied),
        false => Ok(()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn denied() -> bool {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int. Kernels that lack it (AArch64 before 6.12)
    // return an error and leave `mode` alone: nothing is denied there.
    let rc = unsafe { libc::prctl(libc::PR_GET_TSC, &mut mode as *mut libc::c_int) };
    rc == 0 && mode == libc::PR_TSC_SIGSEGV
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn denied() -> bool {
    false
}
