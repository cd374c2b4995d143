//! The raw limit: the bare instruction or call, unrolled, its result thrown away.

/// Reads per block, unrolled; a block is timed from outside.
const UNROLLED: usize = 64;
const BLOCKS: usize = 512;

/// ns per RDTSC.
#[cfg(target_arch = "x86_64")]
pub fn rdtsc() -> f64 {
    timed(|| {
        // SAFETY: RDTSC writes EDX and EAX only.
        unsafe { std::arch::asm!(".rept 64", "rdtsc", ".endr", out("eax") _, out("edx") _, options(nomem, nostack)) }
    })
}

/// ns per RDTSCP.
#[cfg(target_arch = "x86_64")]
pub fn rdtscp() -> f64 {
    timed(|| {
        // SAFETY: RDTSCP writes EDX, EAX and ECX only.
        unsafe {
            std::arch::asm!(".rept 64", "rdtscp", ".endr", out("eax") _, out("edx") _, out("ecx") _, options(nomem, nostack))
        }
    })
}

/// ns per clock_gettime(CLOCK_MONOTONIC).
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
    timed(|| {
        // SAFETY: `t` is writable.
        eight!(eight!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) }));
        std::hint::black_box(&t);
    })
}

fn timed(mut block: impl FnMut()) -> f64 {
    let start = std::time::Instant::now();
    for _ in 0..BLOCKS {
        block();
    }
    start.elapsed().as_nanos() as f64 / (BLOCKS * UNROLLED) as f64
}
