//! The smallest step of a clock's value, although other programs interrupt the measurement.

use super::Budget;
use timing_clock::{Clock, Counter, Granularity, Nanos, SystemSyscall, granularity, ticks_between};

/// A clock's step, and the duration of its measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredStep {
    pub granularity: Granularity,
    pub duration: Nanos,
}

/// Number of differences to collect. A coarse clock has fewer within the time limit.
const STEPS: usize = 4000;

/// The least number of batches of 256 reads. They take 0.1 ms for a fast clock. If another program runs until the end
/// of the time limit, fewer reads could make a single odd difference look like a step.
const MIN_BATCHES: u32 = 16;

/// Above this many ticks, an interruption can look like a step: a time slice of another program takes 100 us or more. A
/// clock with smaller steps has so many differences that interruptions are rare among them.
const LARGE_TICKS: f64 = 100_000.0;

/// Measures the smallest step of `clock`, for about `limit`.
pub fn measure_step<C: Clock>(clock: &C, budget: &Budget, limit: Nanos) -> MeasuredStep {
    // System calls time the reads if the counter is denied.
    match Counter::new() {
        Ok(counter) => measure_step_with(clock, &counter, budget, limit),
        Err(_) => measure_step_with(clock, &SystemSyscall::default(), budget, limit),
    }
}

/// Does the same as [`measure_step`]. `outside` shows interruptions.
fn measure_step_with<C: Clock>(clock: &C, outside: &dyn Clock, budget: &Budget, limit: Nanos) -> MeasuredStep {
    let part = budget.part(limit);
    let left = part.left();
    let first = clock.read();
    let mut batches = 0;
    let mut granularity = granularity(clock, STEPS, || {
        batches += 1;
        !part.interrupted() && go_on(batches, part.spent(), left)
    });
    if is_unclear(granularity) {
        granularity =
            coarse_step(clock, outside, |step| !part.interrupted() && coarse_goes_on(step, part.spent(), limit));
    }
    let duration = part.spent();
    // An interruption after the last reading is a part of the duration, so only one more reading shows that the clock
    // stood still for so long.
    if granularity == Granularity::NeverMoved && clock.read() != first {
        granularity = Granularity::Unknown;
    }
    MeasuredStep { granularity, duration }
}

/// Returns whether an interruption may have caused this result.
fn is_unclear(granularity: Granularity) -> bool {
    granularity.step().is_none_or(|ticks| ticks > LARGE_TICKS)
}

/// Returns whether the first measurement continues. `left` was the time before it. A coarse clock needs the other half of that
/// for its second measurement.
fn go_on(batches: u32, spent: Nanos, left: Nanos) -> bool {
    batches < MIN_BATCHES || spent.0 < left.0 / 2.0
}

/// Returns whether the measurement of a coarse clock continues, with this result so far.
fn coarse_goes_on(step: Granularity, spent: Nanos, limit: Nanos) -> bool {
    spent.0 < if step == Granularity::Unknown { EXTENSION * limit.0 } else { limit.0 }
}

/// Number of steps to collect. All steps of a coarse clock are equal, except for NTP's adjustment.
const COARSE_STEPS: usize = 64;

/// If all changes fell into interruptions, the measurement may take this many times its limit.
const EXTENSION: f64 = 4.0;

/// Returns the step of a clock with large steps. `outside` times each pair of readings, so that a change during an
/// interruption does not count. After each batch, `go_on` gets the result so far.
fn coarse_step<C: Clock>(clock: &C, outside: &dyn Clock, mut go_on: impl FnMut(Granularity) -> bool) -> Granularity {
    let start = outside.read_ordered();
    let first = clock.read();
    let (mut last, mut before_last) = (first, start);
    let mut changes = Changes { changes: Vec::new(), scale: 0.0 };
    loop {
        for _ in 0..256 {
            let before = outside.read_ordered();
            let now = clock.read();
            let after = outside.read_ordered();
            if let Ok(ticks @ 1..) = u64::try_from(ticks_between(last, now)) {
                changes.changes.push((ticks, ticks_between(before_last, after)));
            }
            (last, before_last) = (now, before);
        }
        changes.scale = ticks_between(first, last) as f64 / ticks_between(start, before_last) as f64;
        let step = changes.step();
        if changes.changes.len() >= COARSE_STEPS || !go_on(step) {
            return step;
        }
    }
}

/// A change of the value is a single step if the time between the two readings is at most this share of the change: k
/// steps need more than k - 1 steps of time.
const MAX_TIME_SHARE: f64 = 0.25;

/// NTP adjusts a clock by at most 500 ppm, so its steps differ by at most that.
const SAME_STEP: f64 = 1.001;

/// The changes of a coarse clock between neighboring readings.
pub struct Changes {
    /// ticks of the change, and ticks of the outside clock between the readings
    pub changes: Vec<(u64, i64)>,
    /// ticks of the coarse clock per tick of the outside clock, during the same time
    pub scale: f64,
}

impl Changes {
    /// Returns the changes that are a single step.
    fn steps(&self) -> impl Iterator<Item = f64> {
        let is_one_step = |ticks: u64, between: i64| between as f64 * self.scale <= MAX_TIME_SHARE * ticks as f64;
        let valid = self.scale > 0.0 && self.scale.is_finite();
        let single = self.changes.iter().filter(move |(ticks, between)| valid && is_one_step(*ticks, *between));
        single.map(|(ticks, _)| *ticks as f64)
    }

    /// Returns the step: the mean of the smallest steps.
    pub fn step(&self) -> Granularity {
        if self.changes.is_empty() {
            return Granularity::NeverMoved;
        }
        let Some(smallest) = self.steps().reduce(f64::min) else { return Granularity::Unknown };
        let same: Vec<f64> = self.steps().filter(|step| *step <= SAME_STEP * smallest).collect();
        Granularity::Step(same.iter().sum::<f64>() / same.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use timing_clock::sim::{Character, SimClock, World};

    /// A clock with steps of 4 ms.
    fn coarse() -> Character {
        Character { step: 4_000_000, cost_ns: 5.0, jitter_ns: 0, ..Character::default() }
    }

    /// Measures the step while the thread runs for `run_ns` and then stands still for `pause_ns`, again and again.
    fn step_with_pauses(character: Character, run_ns: f64, pause_ns: f64, periods: u32) -> Granularity {
        let world = World::new(3);
        let outside = SimClock::new(&world, Character { hz: 2.6e9, cost_ns: 10.0, ..Character::default() });
        let clock = SimClock::new(&world, character);
        let mut next_pause = run_ns;
        let mut left = periods;
        coarse_step(&clock, &outside, |_| {
            if world.now_ns() >= next_pause {
                world.pass_ns(pause_ns);
                next_pause = world.now_ns() + run_ns;
                left -= 1;
            }
            left > 0
        })
    }

    #[test]
    fn a_pause_is_no_step() {
        // 2 ms in each 100 ms, as under a CPU quota of 2%.
        for periods in [4, 50] {
            let step = step_with_pauses(coarse(), 2e6, 98e6, periods);
            assert!([Granularity::Step(4e6), Granularity::Unknown].contains(&step), "{step:?}");
        }
        assert_eq!(step_with_pauses(coarse(), 3e6, 97.1e6, 50), Granularity::Step(4e6));
    }

    #[test]
    fn the_step_is_unknown_if_every_change_falls_into_a_pause() {
        // The clock moves at multiples of 4 ms. The thread runs from 0 to 1 ms and from 98.5 ms to 99.5 ms.
        assert_eq!(step_with_pauses(coarse(), 1e6, 97.5e6, 2), Granularity::Unknown);
    }

    #[test]
    fn the_result_so_far_decides_whether_to_continue() {
        let world = World::new(3);
        let outside = SimClock::new(&world, Character { cost_ns: 10.0, ..Character::default() });
        let clock = SimClock::new(&world, coarse());
        let mut seen = Vec::new();
        coarse_step(&clock, &outside, |step| {
            if seen.last() != Some(&step) {
                seen.push(step);
            }
            // A pause after the first batch.
            if seen.len() == 1 {
                world.pass_ns(98.5e6);
            }
            seen.len() < 3
        });
        assert_eq!(seen, [Granularity::NeverMoved, Granularity::Unknown, Granularity::Step(4e6)]);
    }

    #[test]
    fn steps_without_pauses_are_exact() {
        assert_eq!(step_with_pauses(coarse(), 1e6, 0.0, 50), Granularity::Step(4e6));
        let jiffies = Character { step: 10_000_000, ..coarse() };
        assert_eq!(step_with_pauses(jiffies, 1e6, 0.0, 50), Granularity::Step(1e7));
    }

    #[test]
    fn a_stopped_clock_never_moved() {
        let stopped = Character { hz: 0.0, ..Character::default() };
        assert_eq!(step_with_pauses(stopped, 1e6, 98e6, 3), Granularity::NeverMoved);
    }

    #[test]
    fn a_clock_that_moves_with_the_outside_clock_is_unknown() {
        // Both are the kernel's tick, so nothing shows a pause.
        let world = World::new(3);
        let (clock, outside) = (SimClock::new(&world, coarse()), SimClock::new(&world, coarse()));
        let mut left = 10_000;
        let step = coarse_step(&clock, &outside, |_| {
            left -= 1;
            left > 0
        });
        assert_eq!(step, Granularity::Unknown);
    }

    #[test]
    fn a_clock_that_moves_after_the_last_batch_did_not_stand_still() {
        // One reading at each end, and one batch of each measurement, because the stop flag is set.
        const READS: u64 = 2 + 2 * 257;
        let (world, stop) = (World::new(1), AtomicBool::new(true));
        let moves_late = Character { step: 4_000_000, stalls: vec![(READS - 1, 98.5e6)], ..coarse() };
        for (character, expected) in [(coarse(), Granularity::NeverMoved), (moves_late, Granularity::Unknown)] {
            let clock = SimClock::new(&world, character);
            let budget = Budget::new(Nanos::from_secs(60.0), &stop);
            let outside = SimClock::new(&world, Character::default());
            let step = measure_step_with(&clock, &outside, &budget, Nanos::from_secs(1.0));
            assert_eq!((step.granularity, clock.reads()), (expected, READS));
        }
    }

    /// The first batch of reads is short, because the budget is spent at once.
    #[test]
    fn a_fast_clock_is_read_often_enough() {
        let (world, stop) = (World::new(1), AtomicBool::new(false));
        let clock = SimClock::new(&world, Character { step: 26, ..Character::default() });
        let outside = SimClock::new(&world, Character::default());
        let spent = Budget::new(Nanos(0.0), &stop);
        let step = measure_step_with(&clock, &outside, &spent, Nanos::from_secs(1.0));
        assert_eq!(step.granularity, Granularity::Step(26.0));
        assert!(clock.reads() > 4000, "{}", clock.reads());
    }

    #[test]
    fn a_fast_clock_is_read_until_half_of_the_time_is_spent() {
        let goes_on = |batches, spent| go_on(batches, Nanos(spent), Nanos(1000.0));
        assert!(goes_on(16, 499.0) && !goes_on(16, 500.0));
        assert!(goes_on(15, 2000.0) && !goes_on(16, 2000.0));
    }

    #[test]
    fn a_coarse_clock_without_a_result_is_read_for_longer() {
        let goes_on = |step, spent| coarse_goes_on(step, Nanos(spent), Nanos(1000.0));
        assert!(goes_on(Granularity::Step(4e6), 999.0) && !goes_on(Granularity::Step(4e6), 1000.0));
        assert!(goes_on(Granularity::Unknown, 3999.0) && !goes_on(Granularity::Unknown, 4000.0));
    }

    #[test]
    fn large_steps_are_unclear() {
        assert!(!is_unclear(Granularity::Step(100_000.0)) && is_unclear(Granularity::Step(100_001.0)));
        assert!(is_unclear(Granularity::Unknown) && is_unclear(Granularity::NeverMoved));
    }

    #[test]
    fn the_batches_of_a_stopped_clock_are_counted() {
        // Without time, there are only the batches that are always read.
        let (world, stop) = (World::new(1), AtomicBool::new(false));
        let clock = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let outside = SimClock::new(&world, Character::default());
        measure_step_with(&clock, &outside, &Budget::new(Nanos(0.0), &stop), Nanos(0.0));
        assert_eq!(clock.reads(), 2 + (1 + 256 * u64::from(MIN_BATCHES)) + (1 + 256));
    }

    #[test]
    fn the_stop_flag_ends_the_measurement_of_a_stopped_clock() {
        let (world, stop) = (World::new(1), AtomicBool::new(true));
        let clock = SimClock::new(&world, Character { hz: 0.0, ..Character::default() });
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        assert_eq!(measure_step(&clock, &budget, budget.left()).granularity, Granularity::NeverMoved);
    }
}

#[cfg(test)]
mod changes_tests {
    use super::*;

    #[test]
    fn a_change_counts_as_a_step_if_little_time_passed() {
        let step = |changes: &[(u64, i64)], scale| Changes { changes: changes.into(), scale }.step();
        // 125 ticks of the outside clock are 250 ticks of this clock: a quarter of the change.
        assert_eq!(step(&[(1000, 125)], 2.0), Granularity::Step(1000.0));
        assert_eq!(step(&[(1000, 126)], 2.0), Granularity::Unknown);
        // The outside clock says nothing.
        assert_eq!(step(&[(1000, 0)], 0.0), Granularity::Unknown);
        assert_eq!(step(&[(1000, 1)], f64::INFINITY), Granularity::Unknown);
    }

    #[test]
    fn steps_that_ntp_adjusts_are_averaged() {
        let changes = [(1_000_000, 0), (1_000_900, 0), (1_001_100, 0), (2_000_000, 0)].into();
        assert_eq!(Changes { changes, scale: 1.0 }.step(), Granularity::Step(1_000_450.0));
    }
}
