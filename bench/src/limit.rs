//! The raw limit: the cost of the read instruction or call alone. The loop is unrolled, and the results are not used.

/// Reads per block. The block is unrolled.
const UNROLLED: usize = 64;
/// Blocks per measurement.
const BLOCKS: usize = 512;

/// Returns the cost of RDTSC in ns.
#[cfg(target_arch = "x86_64")]
pub fn rdtsc() -> f64 {
    cost_of(|| {
        // SAFETY: RDTSC only writes EDX and EAX.
        unsafe { std::arch::asm!(".rept 64", "rdtsc", ".endr", out("eax") _, out("edx") _, options(nomem, nostack)) }
    })
}

/// Returns the cost of RDTSCP in ns.
#[cfg(target_arch = "x86_64")]
pub fn rdtscp() -> f64 {
    cost_of(|| {
        // SAFETY: RDTSCP only writes EDX, EAX and ECX.
        unsafe {
            std::arch::asm!(".rept 64", "rdtscp", ".endr", out("eax") _, out("edx") _, out("ecx") _, options(nomem, nostack))
        }
    })
}

/// Returns the cost of clock_gettime(CLOCK_MONOTONIC) in ns.
pub fn system() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    macro_rules! eight {
        ($call:expr) => {{
            $call;
            $call;
            $call;
            $call;
            $call;
            $call;
            $call;
            $call;
        }};
    }
    cost_of(|| {
        // SAFETY: `t` is writable.
        eight!(eight!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) }));
        std::hint::black_box(&t);
    })
}

/// Returns the cost of one read in ns. `block` makes 64 reads.
fn cost_of(mut block: impl FnMut()) -> f64 {
    let start = std::time::Instant::now();
    for _ in 0..BLOCKS {
        block();
    }
    start.elapsed().as_nanos() as f64 / (BLOCKS * UNROLLED) as f64
}
