//! The smallest step that a clock's value makes.

use crate::{Clock, ticks_between};

/// What a look at a clock's steps found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Granularity {
    /// The value moves in steps of so many ticks (1: every value can appear).
    Step(f64),
    /// The value never moved while it was looked at.
    NeverMoved,
}

impl Granularity {
    /// The step in ticks, if it is known.
    pub fn step(self) -> Option<f64> {
        match self {
            Granularity::Step(ticks) => Some(ticks),
            Granularity::NeverMoved => None,
        }
    }
}

/// Finds the step of `clock` from up to `samples` differences that are not 0.
///
/// Reads back to back would all be the same distance apart and could hide the step, so the reads
/// are dithered by up to about 100 ns. `go_on` is asked every 256 reads; a coarse clock wants
/// some tens of milliseconds.
pub fn granularity<C: Clock>(clock: &C, samples: usize, mut go_on: impl FnMut() -> bool) -> Granularity {
    let mut steps = Vec::with_capacity(samples);
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut last = clock.read();
    loop {
        for _ in 0..256 {
            random = random.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
            for turn in 0..random >> 58 {
                std::hint::black_box(turn);
            }
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

/// The step behind a set of differences, none of them 0.
///
/// Differences of a clock that moves in steps lie on a comb, and where the step is no whole number
/// of ticks each tooth is two values wide. Values next to each other three wide or wider mean
/// that every value can appear.
fn step_of(differences: &mut [u64]) -> Option<f64> {
    differences.sort_unstable();
    // Long differences are interruptions and thin out: only the lower half has whole teeth.
    let median = *differences.get(differences.len() / 2)?;
    let low = &differences[..differences.partition_point(|&d| d <= median.saturating_mul(4))];
    let rare = differences.len() / 1000;
    // Where no value comes twice (a slow and jittery clock) the smallest distance between any two
    // still is no less than the step.
    let rare = if low.chunk_by(|a, b| a == b).any(|run| run.len() > rare) { rare } else { 0 };
    let mut teeth: Vec<Tooth> = Vec::new();
    for run in low.chunk_by(|a, b| a == b).filter(|run| run.len() > rare) {
        let value = run[0];
        match teeth.last_mut() {
            Some(tooth) if value - tooth.last <= blur(value) => tooth.widen(run),
            _ => teeth.push(Tooth::new(run)),
        }
    }
    if teeth.iter().any(Tooth::is_solid) {
        return Some(1.0);
    }
    let first = teeth.first()?.centre();
    let gaps = teeth.windows(2).map(|pair| pair[1].centre() - pair[0].centre());
    Some(gaps.fold(first, f64::min))
}

/// How far apart two values may be and still be the same number of steps: a tick of rounding, or
/// for steps of milliseconds, what NTP's slewing (at most 500 ppm) can do to them.
fn blur(value: u64) -> u64 {
    (value / 1000).max(1)
}

/// Values that lie together.
struct Tooth {
    first: u64,
    last: u64,
    sum: u128,
    count: usize,
}

impl Tooth {
    fn new(run: &[u64]) -> Tooth {
        Tooth { first: run[0], last: run[0], sum: run[0] as u128 * run.len() as u128, count: run.len() }
    }

    fn widen(&mut self, run: &[u64]) {
        self.last = run[0];
        self.sum += run[0] as u128 * run.len() as u128;
        self.count += run.len();
    }

    fn centre(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    fn is_solid(&self) -> bool {
        self.last - self.first > blur(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Character, SimClock, World};

    fn seen(step: u64, hz: f64, cost_ns: f64) -> Granularity {
        let world = World::new(7);
        let clock = SimClock::new(&world, Character { step, hz, cost_ns, jitter_ns: 40, ..Character::default() });
        let mut rounds = 0;
        granularity(&clock, 4000, || {
            rounds += 1;
            rounds < 20_000
        })
    }

    #[test]
    fn steps_of_1_10_100_ns_and_4_ms_are_told_exactly() {
        for (step, cost) in [(1, 20.0), (10, 20.0), (100, 20.0), (4_000_000, 5.0)] {
            assert_eq!(seen(step, 1e9, cost), Granularity::Step(step as f64), "{step} ns");
        }
    }

    #[test]
    fn steps_of_26_ticks_of_a_fast_counter() {
        assert_eq!(seen(26, 2.6e9, 9.0), Granularity::Step(26.0));
        assert_eq!(seen(2, 2.4e9, 9.0), Granularity::Step(2.0));
    }

    #[test]
    fn a_step_that_is_no_whole_number_of_ticks() {
        // A 14.318 MHz HPET shown in nanoseconds: 69.84 ns, rounded to 69 or 70 at each reading.
        let mut seen: Vec<u64> = (0..4000u64)
            .map(|i| {
                let (from, to) = (i * 3, i * 3 + 10 + i % 4);
                (to as f64 * 69.84) as u64 - (from as f64 * 69.84) as u64
            })
            .collect();
        let step = step_of(&mut seen).unwrap();
        assert!((step - 69.84).abs() < 0.5, "{step}");
    }

    #[test]
    fn differences_that_never_come_twice() {
        let mut spread: Vec<u64> = (0..2000u64).map(|i| 3_000_000 + i * i * 7).collect();
        assert!(step_of(&mut spread).is_some_and(|step| step >= 1.0));
    }

    #[test]
    fn a_clock_that_stands_still() {
        let world = World::new(1);
        let clock = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let mut rounds = 0;
        let found = granularity(&clock, 100, || {
            rounds += 1;
            rounds < 10
        });
        assert_eq!(found, Granularity::NeverMoved);
    }
}
