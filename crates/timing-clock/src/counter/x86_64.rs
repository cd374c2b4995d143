//! The x86 time stamp counter, with three kinds of reads.

use super::Refused;
use crate::Clock;
use core::arch::asm;
use core::arch::x86_64::{_mm_lfence, _rdtsc};

/// Reads the counter with RDTSC. This is the cheapest read. The CPU may execute it before earlier instructions.
#[derive(Clone, Copy, Debug)]
pub struct Rdtsc(());

/// Reads the counter with RDTSCP, which waits until earlier instructions have executed and earlier loads are complete.
/// Earlier stores may still be on their way to memory, and later instructions may start before the read.
#[derive(Clone, Copy, Debug)]
pub struct Rdtscp(());

/// Executes LFENCE, which waits for earlier instructions, and then RDTSC. This also works on CPUs without RDTSCP.
#[derive(Clone, Copy, Debug)]
pub struct LfenceRdtsc(());

impl Rdtsc {
    /// Returns the clock if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| Rdtsc(()))
    }
}

impl Rdtscp {
    /// Returns the clock if this thread may read it and the CPU has the instruction.
    pub fn new() -> Result<Self, Refused> {
        super::permitted()?;
        if crate::Features::of_this_cpu().rdtscp { Ok(Rdtscp(())) } else { Err(Refused::NoInstruction("RDTSCP")) }
    }
}

impl LfenceRdtsc {
    /// Returns the clock if this thread may read it.
    pub fn new() -> Result<Self, Refused> {
        super::permitted().map(|()| LfenceRdtsc(()))
    }
}

impl Clock for Rdtsc {
    #[inline(always)]
    fn read(&self) -> u64 {
        // SAFETY: RDTSC does not access memory, and `new` checked that it does not fault.
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
        // The compiler's intrinsic also stores the CPU's number, which costs half a nanosecond.
        // Without `nomem`, the compiler does not move loads and stores across the read.
        // SAFETY: RDTSCP only writes three registers, and `new` checked that the CPU has the instruction.
        unsafe { asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") _, options(nostack, preserves_flags)) };
        u64::from(high) << 32 | u64::from(low)
    }

    /// Keeps four readings in registers, then stores them together.
    ///
    /// RDTSCP waits for earlier instructions, so a store between two reads makes the second read slower. The difference
    /// was 5% in a measurement.
    #[inline(always)]
    fn fill(&self, buffer: &mut [u64]) {
        let (chunks, remainder) = buffer.as_chunks_mut::<4>();
        for chunk in chunks {
            // SAFETY: see `read`. The stores fill exactly the 32 bytes of `chunk`. The low half comes first, because
            // x86 is little-endian.
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
                    to = in(reg) chunk.as_mut_ptr(),
                    a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _, e = out(reg) _, f = out(reg) _,
                    out("eax") _, out("edx") _, out("ecx") _,
                    options(nostack, preserves_flags)
                )
            };
        }
        remainder.iter_mut().for_each(|slot| *slot = self.read());
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
    // SAFETY: LFENCE is part of SSE2, which every x86_64 CPU has. RDTSC does not access memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks_between;

    /// Checks that all kinds of reads return the counter's value. A busy host may delay a read, so allow 2^36 ticks:
    /// about 26 s.
    fn check_reads(clock: &impl Clock) {
        let start = fenced();
        let mut buffer = [0; 9];
        clock.fill(&mut buffer);
        for reading in [clock.read(), clock.read_ordered()].iter().chain(&buffer) {
            assert!(ticks_between(start, *reading).unsigned_abs() < 1 << 36, "{reading} after {start}: {buffer:?}");
        }
    }

    #[test]
    fn every_read_instruction_returns_the_counters_value() {
        check_reads(&Rdtsc::new().unwrap());
        check_reads(&LfenceRdtsc::new().unwrap());
        if let Ok(rdtscp) = Rdtscp::new() {
            check_reads(&rdtscp);
        }
    }

    /// Multiplications that depend on each other. The CPU cannot overlap them, but it can read the counter meanwhile.
    const CHAIN: usize = 100;

    /// Executes `CHAIN` multiplications. Returns the product, so that the next chain can depend on this one.
    #[inline(always)]
    fn chain(mut x: u64) -> u64 {
        // SAFETY: the instructions change one register and the flags.
        unsafe {
            asm!(".rept {n}", "imul {x}, {x}", ".endr", n = const CHAIN, x = inout(reg) x, options(nomem, nostack))
        };
        x
    }

    /// Returns the ticks between two reads with a chain in between: the shortest of many.
    fn ticks_of_chain(read: impl Fn() -> u64) -> i64 {
        let measure = |_| {
            let before = read();
            chain(3);
            ticks_between(before, read())
        };
        (0..1000).map(measure).min().unwrap()
    }

    /// Returns the ticks of one chain, from a sequence of 100 chains. The reads at both ends hardly matter.
    fn ticks_in_sequence() -> i64 {
        let measure = |_| {
            let before = fenced();
            std::hint::black_box((0..100).fold(3, |x, _| chain(x)));
            ticks_between(before, fenced()) / 100
        };
        (0..100).map(measure).min().unwrap()
    }

    /// Without a fence, the CPU reads the counter before the multiplications end. All durations are from the same run, so
    /// the speed of the machine does not matter.
    #[test]
    fn ordered_reads_wait_for_earlier_instructions() {
        let whole = ticks_in_sequence();
        let (rdtsc, lfence) = (Rdtsc::new().unwrap(), LfenceRdtsc::new().unwrap());
        for found in [ticks_of_chain(|| rdtsc.read_ordered()), ticks_of_chain(|| lfence.read())] {
            assert!(2 * found > whole, "{found} ticks instead of {whole}");
        }
        if let Ok(rdtscp) = Rdtscp::new() {
            for found in [ticks_of_chain(|| rdtscp.read()), ticks_of_chain(|| rdtscp.read_ordered())] {
                assert!(2 * found > whole, "{found} ticks instead of {whole}");
            }
        }
    }

    #[test]
    fn buffers_of_any_length_are_filled_completely() {
        for length in 0..10 {
            let mut buffer = vec![0; length];
            if let Ok(rdtscp) = Rdtscp::new() {
                rdtscp.fill(&mut buffer);
                assert!(!buffer.contains(&0), "{length}: {buffer:?}");
            }
        }
    }
}
