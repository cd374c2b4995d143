//! The smallest step of a clock's value.

use crate::{Clock, ticks_between};

/// The step of a clock's value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Granularity {
    /// The value moves in steps of this many ticks. 1 means that every value can occur.
    Step(f64),
    /// The value never moved during the measurement.
    NeverMoved,
    /// The value moved, but the size of its steps is not known: each movement can be an interruption of the
    /// measurement. [`granularity`](crate::granularity()) never returns this; it is for other methods.
    Unknown,
}

impl Granularity {
    /// Returns the step in ticks, if it is known.
    pub fn step(self) -> Option<f64> {
        if let Granularity::Step(ticks) = self { Some(ticks) } else { None }
    }
}

/// Finds the step of `clock` from differences of its readings. It stops after `samples` differences that are not 0.
///
/// Back-to-back reads could all take the same time, which would hide the step. So [pauses](Clock::pause) of random length,
/// 0 to 63 turns, separate the reads. The measurement also stops when `go_on` returns false. `go_on` is called every 256 reads. A coarse
/// clock needs some tens of milliseconds.
pub fn granularity<C: Clock>(clock: &C, samples: usize, mut go_on: impl FnMut() -> bool) -> Granularity {
    let mut steps = Vec::with_capacity(samples);
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut last = clock.read();
    loop {
        for _ in 0..256 {
            random = random.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
            clock.pause(random >> 58);
            let now = clock.read();
            if let Ok(step @ 1..) = u64::try_from(ticks_between(last, now)) {
                steps.push(step);
            }
            last = now;
        }
        if steps.len() >= samples || !go_on() {
            return step_of(&mut steps).map_or(Granularity::NeverMoved, Granularity::Step);
        }
    }
}

/// Returns the step of a clock, from differences of its readings. No difference may be 0.
///
/// If a clock moves in steps, all differences are multiples of the step, like the teeth of a comb. If the step is not a
/// whole number of ticks, each tooth is two values wide. Three or more neighboring values mean that every value can
/// occur.
fn step_of(differences: &mut [u64]) -> Option<f64> {
    differences.sort_unstable();
    // Differences above four medians are interruptions, and too rare to show the step.
    let median = *differences.get(differences.len() / 2)?;
    let low = &differences[..differences.partition_point(|&d| d <= median.saturating_mul(4))];
    let rare = differences.len() / 1000;
    // With a slow clock and jitter, it can happen that no value occurs twice. Then use every value: two different
    // values differ by at least one step.
    let rare = if low.chunk_by(|a, b| a == b).any(|run| run.len() > rare) { rare } else { 0 };
    let common = low.chunk_by(|a, b| a == b).filter(|run| run.len() > rare);
    let common: Vec<u64> = common.flatten().copied().collect();
    // A tooth: neighboring values, which are differences with the same number of steps.
    let mut teeth: Vec<&[u64]> = common.chunk_by(|a, b| b - a <= blur(*b)).collect();
    if teeth.iter().any(|tooth| tooth[tooth.len() - 1] - tooth[0] > blur(tooth[tooth.len() - 1])) {
        return Some(1.0);
    }
    if let [[.., 1], [next, ..], ..] = teeth.as_slice()
        && *next >= MIN_STEP_WITH_REPEATS
    {
        teeth.remove(0);
    }
    let center = |tooth: &[u64]| tooth.iter().map(|value| u128::from(*value)).sum::<u128>() as f64 / tooth.len() as f64;
    let first = center(teeth.first()?);
    let gaps = teeth.windows(2).map(|pair| center(pair[1]) - center(pair[0]));
    Some(gaps.fold(first, f64::min))
}

/// Some CPUs never return the same value twice: a second read within a step returns one tick more. On an AMD EPYC with
/// a step of 26 ticks, this happened in up to 1% of the reads. A counter with a step of one tick shows all small
/// differences, so a difference of 1 is not a step if the next one is at least this large.
const MIN_STEP_WITH_REPEATS: u64 = 8;

/// Returns the maximum distance of two values with the same number of steps: one tick, because of rounding. Steps of
/// milliseconds also vary with NTP's adjustment of at most 500 ppm, so 0.1% is allowed.
fn blur(value: u64) -> u64 {
    (value / 1000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Character, SimClock, World};
    use std::cell::{Cell, RefCell};

    fn measured(step: u64, hz: f64, cost_ns: f64) -> Granularity {
        let world = World::new(7);
        let clock = SimClock::new(&world, Character { step, hz, cost_ns, jitter_ns: 40, ..Character::default() });
        let mut rounds = 0;
        granularity(&clock, 4000, || {
            rounds += 1;
            rounds < 20_000
        })
    }

    #[cfg_attr(miri, ignore = "an interpreter takes too long")]
    #[test]
    fn steps_of_1_ns_to_4_ms_are_exact() {
        for (step, cost) in [(1, 20.0), (10, 20.0), (100, 20.0), (4_000_000, 5.0)] {
            assert_eq!(measured(step, 1e9, cost), Granularity::Step(step as f64), "{step} ns");
        }
    }

    #[test]
    fn steps_of_a_fast_counter_are_exact() {
        assert_eq!(measured(26, 2.6e9, 9.0), Granularity::Step(26.0));
        assert_eq!(measured(2, 2.4e9, 9.0), Granularity::Step(2.0));
    }

    #[test]
    fn a_step_need_not_be_a_whole_number_of_ticks() {
        // An HPET of 14.318 MHz, in nanoseconds: 69.84 ns, rounded to 69 or 70 at each reading.
        let mut differences: Vec<u64> = (0..4000u64)
            .map(|i| {
                let (from, to) = (i * 3, i * 3 + 10 + i % 4);
                (to as f64 * 69.84) as u64 - (from as f64 * 69.84) as u64
            })
            .collect();
        let step = step_of(&mut differences).unwrap();
        assert!((step - 69.84).abs() < 0.5, "{step}");
    }

    #[test]
    fn differences_without_repetition_give_a_step() {
        let mut spread: Vec<u64> = (0..2000u64).map(|i| 3_000_000 + i * i * 7).collect();
        assert!(step_of(&mut spread).is_some_and(|step| step >= 1.0));
    }

    /// Finds the step of differences, given as values with their numbers of occurrences.
    fn step_of_counts(counts: &[(u64, usize)]) -> Option<f64> {
        let mut differences: Vec<u64> =
            counts.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect();
        step_of(&mut differences)
    }

    #[test]
    fn rare_differences_are_ignored() {
        // Of 4000 differences, a value is rare if it occurs at most 4 times.
        assert_eq!(step_of_counts(&[(40, 4), (52, 1998), (78, 1998)]), Some(26.0));
        assert_eq!(step_of_counts(&[(40, 3), (52, 1999), (78, 1998)]), Some(26.0));
        assert_eq!(step_of_counts(&[(40, 5), (52, 1998), (78, 1997)]), Some(12.0));
    }

    #[test]
    fn rare_differences_count_if_there_are_no_others() {
        let low = (1..=501).map(|n| (10 * n, 4));
        let high = (1..=499).map(|n| (1_000_000 * n, 4));
        assert_eq!(step_of_counts(&low.chain(high).collect::<Vec<_>>()), Some(10.0));
    }

    #[test]
    fn differences_up_to_four_medians_count() {
        assert_eq!(step_of_counts(&[(52, 5), (260, 2000), (286, 1995)]), Some(26.0));
        assert_eq!(step_of_counts(&[(100, 3000), (400, 500), (426, 500)]), Some(100.0));
        assert_eq!(step_of_counts(&[(100, 3000), (374, 500), (400, 500)]), Some(26.0));
    }

    #[test]
    fn long_steps_vary_with_ntps_adjustment() {
        let counts = [(3_999_000, 1000), (4_000_000, 1000), (4_001_000, 1000)];
        assert_eq!(step_of_counts(&counts), Some(4_000_000.0));
    }

    #[test]
    fn two_neighboring_values_are_one_tooth_and_three_are_solid() {
        assert_eq!(step_of_counts(&[(69, 1000), (70, 3000)]), Some(69.75));
        assert_eq!(step_of_counts(&[(69, 1000), (70, 3000), (71, 1000)]), Some(1.0));
        assert_eq!(step_of_counts(&[(69, 1000), (71, 1000)]), Some(2.0));
    }

    #[test]
    fn a_second_read_within_a_step_does_not_hide_the_step() {
        let step = step_of_counts(&[(1, 882), (25, 872), (26, 98_018), (52, 200)]).unwrap();
        assert!((step - 26.0).abs() < 0.02, "{step}");
        assert_eq!(step_of_counts(&[(1, 100), (8, 1000), (16, 1000)]), Some(8.0));
        assert_eq!(step_of_counts(&[(1, 100), (7, 1000), (14, 1000)]), Some(1.0));
        assert_eq!(step_of_counts(&[(1, 1000)]), Some(1.0));
        assert_eq!(step_of_counts(&[(2, 100), (26, 1000), (52, 1000)]), Some(2.0));
    }

    #[test]
    fn no_differences_give_no_step() {
        assert_eq!(step_of_counts(&[]), None);
        assert_eq!((Granularity::Step(2.0).step(), Granularity::NeverMoved.step()), (Some(2.0), None));
    }

    #[test]
    fn a_stopped_clock_never_moved() {
        let world = World::new(1);
        let clock = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let mut rounds = 0;
        let result = granularity(&clock, 100, || {
            rounds += 1;
            rounds < 10
        });
        assert_eq!(result, Granularity::NeverMoved);
    }

    /// Each read takes exactly two steps, so only pauses between the reads show the step.
    #[test]
    fn random_pauses_reveal_a_step_that_regular_reads_hide() {
        let step_with = |pause_ns: f64| {
            let world = World::new(7);
            let character = Character { step: 26, cost_ns: 52.0, jitter_ns: 0, pause_ns, ..Character::default() };
            let clock = SimClock::new(&world, character);
            let mut rounds = 0;
            granularity(&clock, 4000, || {
                rounds += 1;
                rounds < 100
            })
        };
        assert_eq!(step_with(1.6), Granularity::Step(26.0));
        assert_eq!(step_with(0.0), Granularity::Step(52.0));
    }

    /// A clock that stores the turns of its pauses. Each read is one tick after the one before.
    #[derive(Default)]
    struct Recording {
        reads: Cell<u64>,
        turns: RefCell<Vec<u64>>,
    }

    impl Clock for Recording {
        fn read(&self) -> u64 {
            self.reads.set(self.reads.get() + 1);
            self.reads.get()
        }

        fn pause(&self, turns: u64) {
            self.turns.borrow_mut().push(turns);
        }
    }

    #[test]
    fn random_pauses_have_0_to_63_turns() {
        let clock = Recording::default();
        granularity(&clock, 4000, || true);
        let turns = clock.turns.take();
        let distinct = turns.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!((distinct.len(), *turns.iter().max().unwrap()), (64, 63));
        assert_eq!(turns.len() as u64 + 1, clock.reads.get(), "one pause between two reads");
    }
}
