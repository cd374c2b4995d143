//! The arithmetic of bounding an offset by messages: no threads, no clocks.

/// What `b`'s reading is above `a`'s at the same instant, in ticks: from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub low: i64,
    pub high: i64,
    pub passes: u64,
    /// The offset was not the same all the time: the counters run at different rates, or one went
    /// back. `low` to `high` then spans what it was.
    pub moving: bool,
}

/// The run is looked at in so many parts, so that an offset that moves is seen to.
const PARTS: usize = 4;

/// One direction's bounds: `a`'s side collects what the offset is at least, `b`'s what it is at most.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    of: u64,
    passes: u64,
    /// the highest and the lowest bound of each part
    parts: [Option<(i64, i64)>; PARTS],
}

impl Side {
    /// For a run of `of` passes.
    pub fn new(of: u64) -> Side {
        Side { of: of.max(1), passes: 0, parts: [None; PARTS] }
    }

    /// Takes down the bound of one pass, counted from 0.
    pub fn note(&mut self, pass: u64, bound: i64) {
        let part = (pass.min(self.of - 1) * PARTS as u64 / self.of) as usize;
        let (top, bottom) = self.parts[part].unwrap_or((bound, bound));
        self.parts[part] = Some((top.max(bound), bottom.min(bound)));
        self.passes += 1;
    }
}

/// Joins the two sides, widened by one `step` of the clock: a reading can be late by that.
/// `None` if no part of the run has a bound from both.
pub fn join(at_least: &Side, at_most: &Side, step: i64) -> Option<Bounds> {
    let parts: Vec<(i64, i64)> = at_least
        .parts
        .iter()
        .zip(&at_most.parts)
        .filter_map(|pair| match pair {
            (Some((lowest_possible, loosest_low)), Some((loosest_high, highest_possible))) => {
                let (low, high) = (lowest_possible.saturating_sub(step), highest_possible.saturating_add(step));
                // Within a part too the offset can have moved; then only the loosest bounds hold throughout.
                Some(if low <= high { (low, high) } else { (*loosest_low, *loosest_high) })
            }
            _ => None,
        })
        .collect();
    let low = parts.iter().map(|part| part.0).max()?;
    let high = parts.iter().map(|part| part.1).min()?;
    let passes = at_least.passes.min(at_most.passes);
    if low <= high {
        return Some(Bounds { low, high, passes, moving: false });
    }
    let low = parts.iter().map(|part| part.0).min()?;
    let high = parts.iter().map(|part| part.1).max()?;
    Some(Bounds { low: low.min(high), high: high.max(low), passes, moving: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{Clock, ticks_between};

    /// A run of `passes` between two synthetic counters, messages taking 20 to 320 ns.
    fn exchange(seed: u64, a: Character, b: Character, passes: u64) -> (Bounds, f64) {
        let world = World::new(seed);
        let step = a.step.max(b.step) as i64;
        let (a, b) = (SimClock::new(&world, a), SimClock::new(&world, b));
        let (mut low, mut high) = (Side::new(passes), Side::new(passes));
        for pass in 0..passes {
            let sent = a.read_ordered();
            world.pass_ns(20.0 + world.random_below(300) as f64);
            high.note(pass, ticks_between(sent, b.read_ordered()));
            let sent = b.read_ordered();
            world.pass_ns(20.0 + world.random_below(300) as f64);
            low.note(pass, ticks_between(a.read_ordered(), sent));
        }
        (join(&low, &high, step).unwrap(), world.now_ns())
    }

    fn ahead_by(offset: i64) -> Character {
        Character { origin: (1u64 << 40).wrapping_add_signed(offset), ..Character::default() }
    }

    proptest! {
        #[test]
        fn bounds_hold_the_offset(
            seed in any::<u64>(),
            offset in prop_oneof![-10_000_000i64..10_000_000, -100i64..100],
            step in prop_oneof![Just(1u64), Just(26), Just(100)],
        ) {
            let a = Character { step, ..ahead_by(0) };
            let b = Character { step, ..ahead_by(offset) };
            let (bounds, _) = exchange(seed, a, b, 200);
            prop_assert!(bounds.low <= offset && offset <= bounds.high, "{offset}: {bounds:?}");
            prop_assert!(!bounds.moving, "{bounds:?}");
            // Tight as well: the shortest message there and back, and the steps.
            prop_assert!(bounds.high - bounds.low < 200 + 4 * step as i64, "{bounds:?}");
        }

        #[test]
        fn counters_of_two_rates(seed in any::<u64>(), ppm in -5_000.0..5_000.0f64) {
            let fast = Character { hz: 1e9 * (1.0 + ppm / 1e6), ..ahead_by(0) };
            let (bounds, over) = exchange(seed, ahead_by(0), fast, 4000);
            let moved = over * ppm / 1e6;
            let (least, most) = (moved.min(0.0) as i64 - 1, moved.max(0.0) as i64 + 1);
            // Somewhere in the run the offset was within the bounds; if it is called moving, they span it.
            prop_assert!(bounds.low <= most && least <= bounds.high, "{moved}: {bounds:?}");
            if bounds.moving {
                prop_assert!(bounds.low <= least + most / 2 + 500 && bounds.high + 500 >= most / 2, "{moved}: {bounds:?}");
            }
            if moved.abs() > 2_000.0 {
                prop_assert!(bounds.moving, "{moved}: {bounds:?}");
            }
        }
    }

    #[test]
    fn clean_counters_raise_nothing_in_10_000_runs() {
        for seed in 0..10_000 {
            let (bounds, _) = exchange(seed, ahead_by(0), ahead_by(0), 40);
            assert!(bounds.low <= 0 && 0 <= bounds.high && !bounds.moving, "seed {seed}: {bounds:?}");
        }
    }

    #[test]
    fn offsets_beyond_a_message_are_proven() {
        for offset in [300i64, 10_000, 10_000_000, -300, -10_000_000] {
            let (bounds, _) = exchange(3, ahead_by(0), ahead_by(offset), 2000);
            assert!(bounds.low > 0 || bounds.high < 0, "{offset}: {bounds:?}");
        }
    }

    #[test]
    fn one_side_alone_bounds_nothing() {
        let mut side = Side::new(10);
        side.note(0, 5);
        assert_eq!(join(&side, &Side::new(10), 1), None);
    }
}
