//! The arithmetic of bounding an offset by messages: no threads, no clocks.

/// What `b`'s reading is above `a`'s at the same instant, in ticks: from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub low: i64,
    pub high: i64,
    pub passes: u64,
    /// The offset was not the same all the time: the counters run at different rates, or one went
    /// back. `low` to `high` then is how far it went, but for a message's way.
    pub moving: bool,
}

/// The run is looked at in so many parts, so that an offset that moves is seen to.
const PARTS: usize = 4;

/// One direction's bounds: `a`'s side collects what the offset is at least, `b`'s what it is at most.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    of: u64,
    passes: u64,
    lower: bool,
    /// the tightest bound of each part
    parts: [Option<i64>; PARTS],
}

impl Side {
    /// What the offset is at least, for a run of `of` passes.
    pub fn at_least(of: u64) -> Side {
        Side { of: of.max(1), passes: 0, lower: true, parts: [None; PARTS] }
    }

    /// What it is at most.
    pub fn at_most(of: u64) -> Side {
        Side { lower: false, ..Side::at_least(of) }
    }

    /// Takes down the bound of one pass, counted from 0.
    pub fn note(&mut self, pass: u64, bound: i64) {
        let part = (pass.min(self.of - 1) * PARTS as u64 / self.of) as usize;
        let before = self.parts[part].unwrap_or(bound);
        self.parts[part] = Some(if self.lower { before.max(bound) } else { before.min(bound) });
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
        .filter_map(|(low, high)| Some((low.as_ref()?.saturating_sub(step), high.as_ref()?.saturating_add(step))))
        .collect();
    let low = parts.iter().map(|part| part.0).max()?;
    let high = parts.iter().map(|part| part.1).min()?;
    let passes = at_least.passes.min(at_most.passes);
    if low <= high {
        return Some(Bounds { low, high, passes, moving: false });
    }
    // At one time it was at least `low`, at another at most `high`: within a part, or between two.
    let ends = || parts.iter().flat_map(|(low, high)| [*low, *high]);
    Some(Bounds { low: ends().min()?, high: ends().max()?, passes, moving: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{Clock, ticks_between};

    /// The longest that a message takes, with half a read (20 to 30 ns) at each end, in ns.
    const LONGEST: i64 = 350;

    /// A run of `passes` between two synthetic counters, messages taking 20 to 320 ns.
    fn exchange(seed: u64, a: Character, b: Character, passes: u64) -> (Bounds, f64) {
        let world = World::new(seed);
        let step = a.step.max(b.step) as i64;
        let (a, b) = (SimClock::new(&world, a), SimClock::new(&world, b));
        let (mut low, mut high) = (Side::at_least(passes), Side::at_most(passes));
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
            // Somewhere in the run the offset was within the bounds.
            prop_assert!(bounds.low <= most && least <= bounds.high, "{moved}: {bounds:?}");
            if bounds.moving {
                // They span it all but for the way of the first and of the last message, and by no more than the longest.
                for beyond in [least - bounds.low, bounds.high - most] {
                    prop_assert!((-LONGEST..=LONGEST).contains(&beyond), "{moved}: {bounds:?}");
                }
            }
            // From the first part to the last it moves by half of that, or a little less: two messages cannot hide it.
            if moved.abs() > 2.1 * (2 * LONGEST) as f64 {
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

    /// A CPU whose counter is set while it is looked at, however short the look.
    #[test]
    fn a_change_within_a_part_is_seen() {
        for by in [800i64, 10_000, -10_000] {
            let (mut low, mut high) = (Side::at_least(8), Side::at_most(8));
            for pass in 0..8 {
                let offset = if pass < 1 { 0 } else { by };
                low.note(pass, offset - 200);
                high.note(pass, offset + 200);
            }
            let bounds = join(&low, &high, 1).unwrap();
            assert!(bounds.moving && bounds.high - bounds.low >= by.abs() - 400, "{by}: {bounds:?}");
        }
    }

    #[test]
    fn one_side_alone_bounds_nothing() {
        let mut side = Side::at_least(10);
        side.note(0, 5);
        assert_eq!(join(&side, &Side::at_most(10), 1), None);
    }
}
