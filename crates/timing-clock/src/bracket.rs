//! Reads two clocks at almost the same instant, on one CPU.

use crate::{Clock, ticks_between};

/// A value that was read between two reads of a clock. The clock's value at that instant is known to within half the
/// width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket<T> {
    /// reading of the clock before the value was read, in ticks
    pub before: u64,
    /// the value
    pub inside: T,
    /// ticks from the first to the second read of the clock
    pub width: u64,
}

/// Number of attempts. At least one of this many is almost always uninterrupted. They take about 20 us with a fast clock
/// inside, and 0.3 ms with a timer chip.
const TRIES: u32 = 200;

impl<T> Bracket<T> {
    /// Returns the narrowest of 200 brackets. `None` if the clock went back in every one of them.
    ///
    /// The CPU may execute a plain counter read of `inside` before the first read of `clock` is complete. If `inside` reads
    /// a counter, use [`read_ordered`](Clock::read_ordered).
    pub fn narrowest<C: Clock>(clock: &C, mut inside: impl FnMut() -> T) -> Option<Bracket<T>> {
        let mut best: Option<Bracket<T>> = None;
        for _ in 0..TRIES {
            let before = clock.read_ordered();
            let inside = inside();
            let after = clock.read_ordered();
            if let Ok(width) = u64::try_from(ticks_between(before, after))
                && best.as_ref().is_none_or(|best| width < best.width)
            {
                best = Some(Bracket { before, inside, width });
            }
        }
        best
    }

    /// Returns the clock's ticks from the middle of this bracket to the middle of a later one.
    pub fn ticks_to(&self, later: &Bracket<T>) -> f64 {
        ticks_between(self.before, later.before) as f64 + later.half_width() - self.half_width()
    }

    /// Returns the maximum error, in ticks, of the clock's value at the instant of the inner read. The error that the
    /// clock's step causes is not included.
    pub fn half_width(&self) -> f64 {
        self.width as f64 / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock whose n-th read returns the n-th value.
    struct Scripted {
        values: Vec<u64>,
        next: Cell<usize>,
    }

    impl Clock for Scripted {
        fn read(&self) -> u64 {
            self.values[self.next.replace(self.next.get() + 1)]
        }
    }

    /// Returns the narrowest of 200 brackets with these widths. The value inside is the bracket's number.
    fn narrowest(width: impl Fn(u64) -> i64) -> Option<Bracket<u64>> {
        let values = (0..200u64).flat_map(|n| [n * 10_000, (n * 10_000).wrapping_add_signed(width(n))]).collect();
        let clock = Scripted { values, next: Cell::new(0) };
        let mut number = 0;
        Bracket::narrowest(&clock, || {
            number += 1;
            number - 1
        })
    }

    #[test]
    fn the_narrowest_bracket_is_returned_at_any_position() {
        for narrow in [0, 7, 199] {
            let found = narrowest(|n| if n == narrow { 30 } else { 40 + n as i64 });
            assert_eq!(found, Some(Bracket { before: narrow * 10_000, inside: narrow, width: 30 }));
        }
    }

    #[test]
    fn the_first_of_equally_narrow_brackets_is_returned() {
        assert_eq!(narrowest(|_| 30).map(|bracket| bracket.inside), Some(0));
    }

    #[test]
    fn brackets_with_a_backward_step_are_ignored() {
        let found = narrowest(|n| if n == 50 { 900 } else { -1 });
        assert_eq!(found.map(|bracket| (bracket.inside, bracket.width)), Some((50, 900)));
        assert_eq!(narrowest(|_| -1), None);
    }

    #[test]
    fn ticks_are_counted_from_middle_to_middle() {
        let first = Bracket { before: 100, inside: (), width: 20 };
        let later = Bracket { before: 1100, inside: (), width: 60 };
        assert_eq!((first.ticks_to(&later), first.half_width()), (1020.0, 10.0));
        assert_eq!(later.ticks_to(&first), -1020.0);
    }
}
