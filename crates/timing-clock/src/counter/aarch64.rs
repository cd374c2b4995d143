//! The AArch64 virtual counter, with two kinds of reads.

use super::Refused;
use crate::Clock;
use core::arch::asm;

/// Reads CNTVCT_EL0. This is the cheapest read. The CPU may execute it before earlier instructions.
#[derive(Clone, Copy, Debug)]
pub struct Cntvct(());

/// Executes ISB, which waits for earlier instructions, and then reads CNTVCT_EL0.
#[derive(Clone, Copy, Debug)]
pub struct IsbCntvct(());

impl Cntvct {
    /// Returns the clock if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| Cntvct(()))
    }
}

impl IsbCntvct {
    /// Returns the clock if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| IsbCntvct(()))
    }
}

impl Clock for Cntvct {
    #[inline(always)]
    fn read(&self) -> u64 {
        let ticks;
        // Without `nomem`, the compiler does not move loads and stores across the read.
        // SAFETY: user programs may read this register on Linux and the BSDs.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }

    #[inline(always)]
    fn read_ordered(&self) -> u64 {
        fenced()
    }
}

impl Clock for IsbCntvct {
    #[inline(always)]
    fn read(&self) -> u64 {
        fenced()
    }
}

#[inline(always)]
fn fenced() -> u64 {
    let ticks;
    // SAFETY: user programs may read this register. ISB changes no state that a program can see.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
    ticks
}

/// Returns the counter's rate in hertz as the firmware wrote it into CNTFRQ_EL0. It is 0 if the firmware wrote none.
pub(crate) fn cntfrq() -> u64 {
    let hz;
    // SAFETY: user programs may read this register wherever they may read CNTVCT_EL0.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, pure)) };
    hz
}
