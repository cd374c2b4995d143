//! The trait of all clocks, and the operating system's clocks, read through the C library or by system calls.

/// A clock that can be read.
///
/// A reading is a number of *ticks*: nanoseconds for the system's clocks, counts for a CPU's counter. Only the
/// difference of two readings has a meaning. A counter may pass 2^63 and wrap at 2^64, so use [`ticks_between`] for
/// differences.
///
/// Measuring code is generic over this trait, so it is compiled once per clock type. A read costs only its own
/// instructions, and tests can use a [synthetic clock](crate::sim).
pub trait Clock {
    /// Returns the clock's current value in ticks.
    fn read(&self) -> u64;

    /// Fills `buffer` with back-to-back readings. It executes only reads and stores.
    #[inline(always)]
    fn fill(&self, buffer: &mut [u64]) {
        let (chunks, remainder) = buffer.as_chunks_mut::<8>();
        for chunk in chunks {
            *chunk = core::array::from_fn(|_| self.read());
        }
        remainder.iter_mut().for_each(|slot| *slot = self.read());
    }

    /// Waits until the earlier instructions have executed, then returns the clock's value in ticks.
    ///
    /// The CPU may execute a plain counter read before the instructions that precede it. Use this method where the
    /// order of two readings matters, as in brackets and in messages between CPUs. Earlier stores may still be on their
    /// way to memory, and later instructions may start before the read. The default is [`read`](Clock::read).
    fn read_ordered(&self) -> u64 {
        self.read()
    }

    /// Waits for a short time, about 1 ns per turn: the delay between two reads of [`granularity`](crate::granularity()).
    ///
    /// A real clock keeps this default. A [synthetic clock](crate::sim) lets the time of its world pass instead.
    #[inline(always)]
    fn pause(&self, turns: u64) {
        for turn in 0..turns {
            // The compiler must not remove the loop.
            std::hint::black_box(turn);
        }
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline(always)]
    fn read(&self) -> u64 {
        (**self).read()
    }

    #[inline(always)]
    fn fill(&self, buffer: &mut [u64]) {
        (**self).fill(buffer)
    }

    #[inline(always)]
    fn read_ordered(&self) -> u64 {
        (**self).read_ordered()
    }

    #[inline(always)]
    fn pause(&self, turns: u64) {
        (**self).pause(turns)
    }
}

/// Returns the ticks from `earlier` to `later`. They are negative if the clock went back.
///
/// The result is correct for any two readings less than 2^63 ticks apart, also across the wrap.
#[inline(always)]
#[must_use]
pub fn ticks_between(earlier: u64, later: u64) -> i64 {
    later.wrapping_sub(earlier) as i64
}

/// A clock of `clock_gettime`, read through the C library as PostgreSQL does. The C library uses the vDSO if there is
/// one. Ticks are nanoseconds. A clock that the kernel does not have always reads 0: see [`exists`](Posix::exists).
#[derive(Clone, Copy, Debug, Default)]
pub struct Posix<const ID: libc::clockid_t>;

/// The clock that PostgreSQL reads on this platform.
pub type System = Posix<SYSTEM>;
const SYSTEM: libc::clockid_t = if cfg!(target_vendor = "apple") { REFERENCE.0 } else { libc::CLOCK_MONOTONIC };

/// The reference for measured rates. NTP does not adjust it, except on systems where NTP adjusts every clock (FreeBSD).
pub type Reference = Posix<{ REFERENCE.0 }>;
/// The name of [`Reference`] in the platform's manual.
pub const REFERENCE_NAME: &str = REFERENCE.1;
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
const REFERENCE: (libc::clockid_t, &str) = (libc::CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW");
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
const REFERENCE: (libc::clockid_t, &str) = (libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC");

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
        enter_kernel(ID).is_some()
    }
}

/// A clock of `clock_gettime`, read by a system call and not by the vDSO. Ticks are nanoseconds.
///
/// Compare it with [`Posix`] to see how much time the vDSO saves. It also works if the counter is denied. A clock that the
/// kernel does not have always reads 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syscall<const ID: libc::clockid_t>;

/// [`System`], read by a system call.
pub type SystemSyscall = Syscall<SYSTEM>;

impl<const ID: libc::clockid_t> Clock for Syscall<ID> {
    #[inline(always)]
    fn read(&self) -> u64 {
        enter_kernel(ID).unwrap_or(0)
    }
}

/// Returns the time in nanoseconds.
#[inline(always)]
fn nanos(t: &libc::timespec) -> u64 {
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Returns the time of a clock in nanoseconds. `None` if the kernel does not have it.
#[inline(always)]
fn enter_kernel(id: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` outlives the call. On 64-bit targets the kernel's timespec is libc's.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let status = unsafe { libc::syscall(libc::SYS_clock_gettime, id, &mut now) };
    // SAFETY: the same. On these systems only the C library makes system calls.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let status = unsafe { libc::clock_gettime(id, &mut now) };
    (status == 0).then(|| nanos(&now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn differences_are_correct_across_the_sign_bit_and_the_wrap() {
        assert_eq!(ticks_between(i64::MAX as u64, i64::MAX as u64 + 7), 7);
        assert_eq!(ticks_between(u64::MAX, 1), 2);
        assert_eq!(ticks_between(1, u64::MAX), -2);
    }

    /// Plain reads count 1, 2, 3. Ordered reads return 1000. A pause counts its turns.
    struct Counting(Cell<u64>);

    impl Clock for Counting {
        fn read(&self) -> u64 {
            self.0.set(self.0.get() + 1);
            self.0.get()
        }

        fn read_ordered(&self) -> u64 {
            1000
        }

        fn pause(&self, turns: u64) {
            self.0.set(self.0.get() + turns);
        }
    }

    #[test]
    fn fill_stores_one_reading_per_slot_in_order() {
        for length in [0, 1, 7, 8, 9, 16, 23] {
            let mut buffer = vec![0; length];
            Counting(Cell::new(0)).fill(&mut buffer);
            assert_eq!(buffer, (1..=length as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_reference_to_a_clock_is_that_clock() {
        fn readings<C: Clock>(clock: C) -> (u64, [u64; 3], u64, u64) {
            let mut buffer = [0; 3];
            let first = clock.read();
            clock.fill(&mut buffer);
            clock.pause(5);
            (first, buffer, clock.read_ordered(), clock.read())
        }
        let expected = (1, [2, 3, 4], 1000, 10);
        assert_eq!(readings::<&Counting>(&Counting(Cell::new(0))), expected);
        assert_eq!(readings::<&dyn Clock>(&Counting(Cell::new(0))), expected);
    }

    #[test]
    fn an_ordered_read_is_a_plain_read_by_default() {
        struct Fixed;
        impl Clock for Fixed {
            fn read(&self) -> u64 {
                42
            }
        }
        assert_eq!(Fixed.read_ordered(), 42);
    }

    /// Compares two durations of the same run, so the speed of the machine does not matter. An interruption can only make
    /// a pause longer, so the shortest of several pauses counts.
    #[test]
    fn a_pause_of_many_turns_takes_longer_than_a_pause_of_none() {
        let counter = crate::Counter::new().unwrap();
        let shortest = |turns: u64| {
            let pause = |_| {
                let before = counter.read_ordered();
                counter.pause(turns);
                ticks_between(before, counter.read_ordered())
            };
            (0..20).map(pause).min().unwrap()
        };
        let (none, many) = (shortest(0), shortest(100_000));
        assert!(many > 2 * none, "{none} ticks without turns, {many} ticks with 100 000");
    }
}

#[cfg(test)]
mod system_tests {
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
