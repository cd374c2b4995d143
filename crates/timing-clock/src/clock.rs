//! What every clock can do: be read.

/// Something that is read for the time.
///
/// A reading is a number of *ticks* of that clock: nanoseconds for the system's
/// clocks, counts for a CPU's counter. Only differences mean anything, and a
/// counter may pass 2^63 or wrap at 2^64, so take them with [`ticks_between`].
///
/// Code that measures is generic over this trait and so compiled once per
/// clock: a reading costs what its instructions cost, and a test can put a
/// [synthetic clock](crate::sim) in its place.
pub trait Clock {
    /// The clock's value now, in ticks.
    fn read(&self) -> u64;

    /// Fills `buffer` with readings taken back to back: nothing but reads and stores.
    #[inline(always)]
    fn fill(&self, buffer: &mut [u64]) {
        let (eights, rest) = buffer.as_chunks_mut::<8>();
        for eight in eights {
            *eight = core::array::from_fn(|_| self.read());
        }
        rest.iter_mut().for_each(|slot| *slot = self.read());
    }

    /// The clock's value once every earlier instruction has finished, in ticks.
    ///
    /// A plain counter read may be executed before the instructions in front of
    /// it. Where the order of two readings matters (brackets, messages between
    /// CPUs) this is the one to take.
    fn read_ordered(&self) -> u64 {
        self.read()
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
}

/// Ticks from `earlier` to `later`: negative when the clock went back.
///
/// Right for any two readings less than 2^63 ticks apart, also across the wrap.
#[inline(always)]
pub fn ticks_between(earlier: u64, later: u64) -> i64 {
    later.wrapping_sub(earlier) as i64
}

#[cfg(test)]
mod tests {
    use super::ticks_between;

    #[test]
    fn differences_hold_across_the_sign_bit_and_the_wrap() {
        assert_eq!(ticks_between(i64::MAX as u64, i64::MAX as u64 + 7), 7);
        assert_eq!(ticks_between(u64::MAX, 1), 2);
        assert_eq!(ticks_between(1, u64::MAX), -2);
    }
}
