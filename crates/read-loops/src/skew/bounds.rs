//! The arithmetic that bounds an offset by messages, without threads or clocks.

/// Bounds of `b`'s reading minus `a`'s reading at the same instant, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub low: i64,
    pub high: i64,
    pub passes: u64,
    /// The offset changed: the counters have different rates, or one went back. Then `low` and `high` are the extremes
    /// of the offset, within the time that a message takes.
    pub moving: bool,
}

/// The run is evaluated in this many parts, to detect an offset that moves.
const PARTS: usize = 4;

/// The bounds from one direction: `a` collects lower bounds, and `b` collects upper bounds.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    planned_passes: u64,
    passes: u64,
    is_lower: bool,
    /// tightest bound of each part
    parts: [Option<i64>; PARTS],
}

impl Side {
    /// Returns a collector of lower bounds for a run of `planned_passes` passes.
    pub fn lower(planned_passes: u64) -> Side {
        Side { planned_passes: planned_passes.max(1), passes: 0, is_lower: true, parts: [None; PARTS] }
    }

    /// Returns a collector of upper bounds.
    pub fn upper(planned_passes: u64) -> Side {
        Side { is_lower: false, ..Side::lower(planned_passes) }
    }

    /// Adds the bound of one pass. The first pass is number 0.
    pub fn add(&mut self, pass: u64, bound: i64) {
        let part = (pass.min(self.planned_passes - 1) * PARTS as u64 / self.planned_passes) as usize;
        let tightest = self.parts[part].unwrap_or(bound);
        self.parts[part] = Some(if self.is_lower { tightest.max(bound) } else { tightest.min(bound) });
        self.passes += 1;
    }
}

/// Joins the two sides and widens the bounds by one `step` of the clock, because a reading can be late by that.
/// Returns `None` if no part of the run has bounds from both sides.
pub fn join(lower: &Side, upper: &Side, step: i64) -> Option<Bounds> {
    let parts: Vec<(i64, i64)> = lower
        .parts
        .iter()
        .zip(&upper.parts)
        .filter_map(|(low, high)| Some((low.as_ref()?.saturating_sub(step), high.as_ref()?.saturating_add(step))))
        .collect();
    let low = parts.iter().map(|part| part.0).max()?;
    let high = parts.iter().map(|part| part.1).min()?;
    let passes = lower.passes.min(upper.passes);
    if low <= high {
        return Some(Bounds { low, high, passes, moving: false });
    }
    // The bounds exclude each other, so the offset moved within a part or between two parts.
    let ends = || parts.iter().flat_map(|(low, high)| [*low, *high]);
    Some(Bounds { low: ends().min()?, high: ends().max()?, passes, moving: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{Clock, ticks_between};

    /// The longest time of a message in ns, with half a read (20 to 30 ns) at each end.
    const LONGEST_MESSAGE: i64 = 350;

    /// Runs `passes` passes between two synthetic counters. A message takes 20 to 320 ns.
    fn exchange(seed: u64, a: Character, b: Character, passes: u64) -> (Bounds, f64) {
        let world = World::new(seed);
        let step = a.step.max(b.step) as i64;
        let (a, b) = (SimClock::new(&world, a), SimClock::new(&world, b));
        let (mut low, mut high) = (Side::lower(passes), Side::upper(passes));
        for pass in 0..passes {
            let sent = a.read_ordered();
            world.pass_ns(20.0 + world.random_below(300) as f64);
            high.add(pass, ticks_between(sent, b.read_ordered()));
            let sent = b.read_ordered();
            world.pass_ns(20.0 + world.random_below(300) as f64);
            low.add(pass, ticks_between(a.read_ordered(), sent));
        }
        (join(&low, &high, step).unwrap(), world.now_ns())
    }

    fn ahead_by(offset: i64) -> Character {
        Character { origin: (1u64 << 40).wrapping_add_signed(offset), ..Character::default() }
    }

    proptest! {
        #[test]
        fn bounds_contain_the_offset(
            seed in any::<u64>(),
            offset in prop_oneof![-10_000_000i64..10_000_000, -100i64..100],
            step in prop_oneof![Just(1u64), Just(26), Just(100)],
        ) {
            let a = Character { step, ..ahead_by(0) };
            let b = Character { step, ..ahead_by(offset) };
            let (bounds, _) = exchange(seed, a, b, 200);
            prop_assert!(bounds.low <= offset && offset <= bounds.high, "{offset}: {bounds:?}");
            prop_assert!(!bounds.moving, "{bounds:?}");
            // The bounds are tight, too: the shortest message in each direction, and the steps.
            prop_assert!(bounds.high - bounds.low < 200 + 4 * step as i64, "{bounds:?}");
        }

        #[test]
        fn counters_of_different_rates_move(seed in any::<u64>(), ppm in -5_000.0..5_000.0f64) {
            let fast = Character { hz: 1e9 * (1.0 + ppm / 1e6), ..ahead_by(0) };
            let (bounds, over) = exchange(seed, ahead_by(0), fast, 4000);
            let moved = over * ppm / 1e6;
            let (least, most) = (moved.min(0.0) as i64 - 1, moved.max(0.0) as i64 + 1);
            // The offset was within the bounds at some time of the run.
            prop_assert!(bounds.low <= most && least <= bounds.high, "{moved}: {bounds:?}");
            if bounds.moving {
                // The bounds contain the whole movement, within the time of the longest message.
                for beyond in [least - bounds.low, bounds.high - most] {
                    prop_assert!((-LONGEST_MESSAGE..=LONGEST_MESSAGE).contains(&beyond), "{moved}: {bounds:?}");
                }
            }
            // From the first to the last part the offset moves by about half of that. Two messages cannot hide it.
            if moved.abs() > 2.1 * (2 * LONGEST_MESSAGE) as f64 {
                prop_assert!(bounds.moving, "{moved}: {bounds:?}");
            }
        }
    }

    #[test]
    fn equal_counters_give_no_false_alarm_in_10_000_runs() {
        for seed in 0..10_000 {
            let (bounds, _) = exchange(seed, ahead_by(0), ahead_by(0), 40);
            assert!(bounds.low <= 0 && 0 <= bounds.high && !bounds.moving, "seed {seed}: {bounds:?}");
        }
    }

    #[test]
    fn offsets_longer_than_a_message_exclude_zero() {
        for offset in [300i64, 10_000, 10_000_000, -300, -10_000_000] {
            let (bounds, _) = exchange(3, ahead_by(0), ahead_by(offset), 2000);
            assert!(bounds.low > 0 || bounds.high < 0, "{offset}: {bounds:?}");
        }
    }

    /// A CPU's counter is changed during a very short run.
    #[test]
    fn a_change_within_a_part_is_detected() {
        for by in [800i64, 10_000, -10_000] {
            let (mut low, mut high) = (Side::lower(8), Side::upper(8));
            for pass in 0..8 {
                let offset = if pass < 1 { 0 } else { by };
                low.add(pass, offset - 200);
                high.add(pass, offset + 200);
            }
            let bounds = join(&low, &high, 1).unwrap();
            assert!(bounds.moving && bounds.high - bounds.low >= by.abs() - 400, "{by}: {bounds:?}");
        }
    }

    #[test]
    fn one_side_alone_gives_no_bounds() {
        let mut side = Side::lower(10);
        side.add(0, 5);
        assert_eq!(join(&side, &Side::upper(10), 1), None);
    }
}
