//! The x86 time stamp counter, read three ways.

use super::Refused;
use crate::Clock;
use core::arch::asm;
use core::arch::x86_64::{_mm_lfence, _rdtsc};

/// RDTSC: the cheapest read. The CPU may execute it ahead of earlier instructions.
#[derive(Clone, Copy, Debug)]
pub struct Rdtsc(());

/// RDTSCP: waits until earlier instructions have executed.
#[derive(Clone, Copy, Debug)]
pub struct Rdtscp(());

/// RDTSC behind LFENCE: ordered as RDTSCP is, on CPUs without it as well.
#[derive(Clone, Copy, Debug)]
pub struct LfenceRdtsc(());

impl Rdtsc {
    /// The clock, if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| Rdtsc(()))
    }
}

impl Rdtscp {
    /// The clock, if this thread may read it and the CPU has the instruction.
    pub fn new() -> Result<Self, Refused> {
        super::permitted()?;
        match crate::Features::of_this_cpu().rdtscp {
            true => Ok(Rdtscp(())),
            false => Err(Refused::NoInstruction("RDTSCP")),
        }
    }
}

impl LfenceRdtsc {
    /// The clock, if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| LfenceRdtsc(()))
    }
}

impl Clock for Rdtsc {
    #[inline(always)]
    fn read(&self) -> u64 {
        // SAFETY: RDTSC touches no memory; `new` has seen that it does not fault.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    fn read_ordered(&self) -> u64 {
        fenced()
    }
}

impl Clock for Rdtscp {
    #[inline(always)]
    fn read(&self) -> u64 {
        let (low, high): (u32, u32);
        // The intrinsic would store the CPU's number as well, which costs half a nanosecond.
        // SAFETY: writes three registers only; `new` has seen that the CPU has the instruction.
        unsafe { asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") _, options(nomem, nostack)) };
        u64::from(high) << 32 | u64::from(low)
    }

    /// RDTSCP waits for the instructions in front of it, so each store between two reads would add to
    /// the second (5% here): four readings stay in registers before they are stored together.
    #[inline(always)]
    fn fill(&self, buffer: &mut [u64]) {
        let (fours, rest) = buffer.as_chunks_mut::<4>();
        for four in fours {
            // SAFETY: as in `read`; the halves fill the 32 bytes of `four`, low half first as x86
            // stores integers.
            unsafe {
                asm!(
                    "rdtscp", "mov {a:e}, eax", "mov {b:e}, edx",
                    "rdtscp", "mov {c:e}, eax", "mov {d:e}, edx",
                    "rdtscp", "mov {e:e}, eax", "mov {f:e}, edx",
                    "rdtscp",
                    "mov dword ptr [{to}], {a:e}", "mov dword ptr [{to} + 4], {b:e}",
                    "mov dword ptr [{to} + 8], {c:e}", "mov dword ptr [{to} + 12], {d:e}",
                    "mov dword ptr [{to} + 16], {e:e}", "mov dword ptr [{to} + 20], {f:e}",
                    "mov dword ptr [{to} + 24], eax", "mov dword ptr [{to} + 28], edx",
                    to = in(reg) four.as_mut_ptr(),
                    a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _, e = out(reg) _, f = out(reg) _,
                    out("eax") _, out("edx") _, out("ecx") _,
                    options(nostack, preserves_flags)
                )
            };
        }
        rest.iter_mut().for_each(|slot| *slot = self.read());
    }

    #[inline(always)]
    fn read_ordered(&self) -> u64 {
        fenced()
    }
}

impl Clock for LfenceRdtsc {
    #[inline(always)]
    fn read(&self) -> u64 {
        fenced()
    }
}

#[inline(always)]
fn fenced() -> u64 {
    // SAFETY: LFENCE is part of SSE2, which x86_64 always has, and RDTSC touches no memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}
