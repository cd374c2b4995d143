//! Two clocks read at the same instant, as nearly as one CPU can.

use crate::{Clock, ticks_between};

/// Something read between two reads of a clock: the clock's value at that instant is known to half
/// the width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket<T> {
    /// the clock before it
    pub before: u64,
    /// what was read
    pub inside: T,
    /// ticks of the clock until it was read again
    pub width: u64,
}

/// After so many tries one is undisturbed nearly always; they take some 10 us.
const TRIES: u32 = 200;

impl<T> Bracket<T> {
    /// The narrowest of 200 brackets. `None` if the clock went back in every one of them.
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

    /// Ticks of the clock from the middle of this bracket to the middle of a later one.
    pub fn ticks_to(&self, later: &Bracket<T>) -> f64 {
        ticks_between(self.before, later.before) as f64 + later.half_width() - self.half_width()
    }

    /// The clock's value at the instant of the inner read is off by at most this, in ticks, beside
    /// one step of the clock.
    pub fn half_width(&self) -> f64 {
        self.width as f64 / 2.0
    }
}
