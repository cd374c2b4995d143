//! The AArch64 virtual counter, read two ways.

use super::Refused;
use crate::Clock;
use core::arch::asm;

/// CNTVCT_EL0: the cheapest read. The CPU may execute it ahead of earlier instructions.
#[derive(Clone, Copy, Debug)]
pub struct Cntvct(());

/// CNTVCT_EL0 behind ISB, which waits for earlier instructions.
#[derive(Clone, Copy, Debug)]
pub struct IsbCntvct(());

impl Cntvct {
    /// The clock, if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| Cntvct(()))
    }
}

impl IsbCntvct {
    /// The clock, if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| IsbCntvct(()))
    }
}

impl Clock for Cntvct {
    #[inline(always)]
    fn read(&self) -> u64 {
        let ticks;
        // SAFETY: reads a register that Linux and the BSDs open to user programs.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
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
    // SAFETY: as above; ISB changes no state a program can see.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
    ticks
}

/// CNTFRQ_EL0: the rate that the firmware claims for the counter, in hertz. 0 if it set none.
pub(crate) fn cntfrq() -> u64 {
    let hz;
    // SAFETY: reads a register that is open to user programs wherever CNTVCT_EL0 is.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, pure)) };
    hz
}
