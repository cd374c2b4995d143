//! The offset between two CPUs' readings of one clock.
//!
//! Two threads on two CPUs send messages back and forth, and read the clock when they send or receive one. A message
//! cannot arrive before it was sent. So one direction gives an upper bound of the offset, and the other direction gives
//! a lower bound. The narrowest bounds of many passes are used.

use super::{Budget, Pinned};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use timing_clock::{Clock, Nanos, ticks_between};

/// Passes per pair of CPUs. With this many, the bounds vary by only a few ticks from run to run.
const PASSES: u64 = 4000;

/// The reason why there are no bounds.
#[derive(Debug)]
pub enum SkewError {
    /// a thread could not run on this CPU
    Cpu(usize, io::Error),
    /// the CPUs did not answer each other in time
    NoAnswer,
    /// the second thread could not be created
    NoThread(io::Error),
}

/// A message with one reading. It is aligned to two cache lines, so that the messages of the two threads never share
/// one.
#[derive(Default)]
#[repr(align(128))]
struct Slot {
    /// number of the pass. It is 0 before the first pass, and `CLOSED` after the sender has stopped
    turn: AtomicU64,
    reading: AtomicU64,
}

const CLOSED: u64 = u64::MAX;

impl Slot {
    fn send(&self, turn: u64, reading: u64) {
        self.reading.store(reading, Ordering::Relaxed);
        self.turn.store(turn, Ordering::Release);
    }

    /// Waits for the message of pass `turn`. Returns `None` if the sender has stopped or time is up.
    fn receive(&self, turn: u64, budget: &Budget) -> Option<u64> {
        // Checking the budget is a system call, so check it only about every 20 us.
        for spin in 1u32.. {
            match self.turn.load(Ordering::Acquire) {
                CLOSED => return None,
                seen if seen == turn => return Some(self.reading.load(Ordering::Relaxed)),
                _ if spin.is_multiple_of(1024) && !budget.go_on() => return None,
                _ => std::hint::spin_loop(),
            }
        }
        None
    }
}

/// Bounds the offset between CPUs `a` and `b` within `limit`. `step` is the clock's step in ticks.
///
/// The clock is a trait object, so that this loop is compiled in this crate. Calling it takes much less time than a
/// message.
pub fn skew_between(
    clock: &(dyn Clock + Sync),
    step: i64,
    (a, b): (usize, usize),
    budget: &Budget,
    limit: Nanos,
) -> Result<Bounds, SkewError> {
    let budget = budget.part(limit);
    let (forward, backward) = (Slot::default(), Slot::default());
    let (upper, lower) = std::thread::scope(|threads| {
        // spawn() would panic if a limit of the user or of the container allows no further thread.
        let thread_b = std::thread::Builder::new().spawn_scoped(threads, || {
            let side = Pinned::to(b)
                .and_then(|pin| pin.if_still_pinned(receive_and_answer(clock, &forward, &backward, &budget)));
            backward.turn.store(CLOSED, Ordering::Release);
            side.map_err(|error| SkewError::Cpu(b, error))
        });
        let thread_b = match thread_b {
            Ok(thread) => thread,
            Err(error) => return (Err(SkewError::NoThread(error)), Ok(Side::new(0, true))),
        };
        let side =
            Pinned::to(a).and_then(|pin| pin.if_still_pinned(send_and_wait(clock, &forward, &backward, &budget)));
        forward.turn.store(CLOSED, Ordering::Release);
        let side = side.map_err(|error| SkewError::Cpu(a, error));
        (thread_b.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), side)
    });
    join(&lower?, &upper?, step).ok_or(SkewError::NoAnswer)
}

/// Runs `a`'s side. A lower bound is the reading that `b` sent, minus `a`'s reading on receipt.
fn send_and_wait(clock: &dyn Clock, forward: &Slot, backward: &Slot, budget: &Budget) -> Side {
    let mut side = Side::new(PASSES, true);
    for turn in 1..=PASSES {
        forward.send(turn, clock.read_ordered());
        let Some(sent) = backward.receive(turn, budget) else { break };
        side.add(ticks_between(clock.read_ordered(), sent));
    }
    side
}

/// Runs `b`'s side. An upper bound is `b`'s reading on receipt, minus the reading that `a` sent.
fn receive_and_answer(clock: &dyn Clock, forward: &Slot, backward: &Slot, budget: &Budget) -> Side {
    let mut side = Side::new(PASSES, false);
    for turn in 1..=PASSES {
        let Some(sent) = forward.receive(turn, budget) else { break };
        side.add(ticks_between(sent, clock.read_ordered()));
        backward.send(turn, clock.read_ordered());
    }
    side
}

/// Bounds of `b`'s reading minus `a`'s reading at the same instant, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub low: i64,
    pub high: i64,
    /// number of passes, the smaller one of both directions
    pub passes: u64,
    /// whether the offset changed, because the counters have different rates or one went back. Then `low` and `high`
    /// are the extremes of the offset, with an error of up to one message time
    pub moving: bool,
}

/// Number of parts of a run. Each part has its own bounds, to detect an offset that moves.
const PARTS: usize = 4;

/// The bounds from one direction of messages: `a` collects lower bounds, and `b` collects upper bounds.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    planned_passes: u64,
    passes: u64,
    is_lower: bool,
    /// tightest bound of each part
    parts: [Option<i64>; PARTS],
}

impl Side {
    /// Returns a collector of lower or upper bounds for a run of `planned_passes` passes.
    pub fn new(planned_passes: u64, is_lower: bool) -> Side {
        Side { planned_passes: planned_passes.max(1), passes: 0, is_lower, parts: [None; PARTS] }
    }

    /// Adds the bound of the next pass. Passes beyond the planned number belong to the last part.
    pub fn add(&mut self, bound: i64) {
        let part = ((self.passes * PARTS as u64 / self.planned_passes) as usize).min(PARTS - 1);
        let tightest = self.parts[part].unwrap_or(bound);
        self.parts[part] = Some(if self.is_lower { tightest.max(bound) } else { tightest.min(bound) });
        self.passes += 1;
    }
}

/// Returns the bounds from both sides. They include one `step` of the clock, because a reading can be late by one step.
/// `None` if no part of the run has bounds from both sides.
pub fn join(lower: &Side, upper: &Side, step: i64) -> Option<Bounds> {
    let bounds = lower.parts.into_iter().zip(upper.parts);
    let bounds = bounds.filter_map(|(low, high)| Some((low?.saturating_sub(step), high?.saturating_add(step))));
    let parts: Vec<(i64, i64)> = bounds.collect();
    let low = parts.iter().map(|part| part.0).max()?;
    let high = parts.iter().map(|part| part.1).min()?;
    let passes = lower.passes.min(upper.passes);
    if low <= high {
        return Some(Bounds { low, high, passes, moving: false });
    }
    // No single offset fits all parts, so the offset moved within a part or between two parts.
    let all_bounds = || parts.iter().flat_map(|(low, high)| [*low, *high]);
    Some(Bounds { low: all_bounds().min()?, high: all_bounds().max()?, passes, moving: true })
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowed;
    use std::sync::atomic::AtomicBool;
    use timing_clock::System;

    /// The system clock, with an offset on one CPU.
    struct OffsetOn {
        cpu: usize,
        offset: i64,
    }

    impl Clock for OffsetOn {
        fn read(&self) -> u64 {
            // SAFETY: sched_getcpu() only returns the CPU's number.
            let current = unsafe { libc::sched_getcpu() };
            let offset = if current == self.cpu as i32 { self.offset } else { 0 };
            System::default().read().wrapping_add_signed(offset)
        }
    }

    /// Runs the threads and messages of a real check.
    #[test]
    fn offsets_between_real_cpus_are_bounded() {
        let cpus = allowed().unwrap();
        let &[a, b, ..] = cpus.as_slice() else {
            eprintln!("SKIPPED: only one CPU");
            return;
        };
        let stop = AtomicBool::new(false);
        for offset in [-1_000_000_000i64, 0, 1_000_000_000] {
            let budget = Budget::new(Nanos::from_secs(20.0), &stop);
            let clock = OffsetOn { cpu: b, offset };
            let bounds = skew_between(&clock, 1, (a, b), &budget, Nanos::from_secs(10.0)).unwrap();
            assert!(bounds.low <= offset && offset <= bounds.high, "{offset}: {bounds:?}");
            assert!(bounds.high - bounds.low < 500_000_000, "{offset}: {bounds:?}");
        }
    }

    #[test]
    fn the_error_has_the_number_of_a_missing_cpu() {
        let stop = AtomicBool::new(false);
        let budget = Budget::new(Nanos::from_secs(1.0), &stop);
        let error = skew_between(&System::default(), 1, (0, 100_000), &budget, Nanos::from_secs(1.0)).unwrap_err();
        assert!(matches!(error, SkewError::Cpu(100_000, _)), "{error:?}");
    }

    #[test]
    fn a_message_is_received_in_its_pass() {
        let stop = AtomicBool::new(false);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let slot = Slot::default();
        slot.send(3, 42);
        assert_eq!(slot.receive(3, &budget), Some(42));
        slot.turn.store(CLOSED, Ordering::Release);
        assert_eq!(slot.receive(4, &budget), None);
    }

    #[test]
    fn waiting_for_a_message_ends_with_the_budget() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let slot = Slot::default();
        slot.send(3, 42);
        assert_eq!(slot.receive(4, &budget), None);
    }

    #[test]
    fn a_sender_without_answers_has_no_bounds() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let (forward, backward) = (Slot::default(), Slot::default());
        let lower = send_and_wait(&System::default(), &forward, &backward, &budget);
        assert_eq!(forward.turn.load(Ordering::Relaxed), 1);
        let upper = receive_and_answer(&System::default(), &backward, &forward, &budget);
        assert_eq!(join(&lower, &upper, 1), None);
    }
}

#[cfg(test)]
mod bounds_tests {
    use super::*;
    use proptest::prelude::*;
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{Clock, ticks_between};

    /// Maximum time of a message in ns: 320 ns, and half a read (20 to 30 ns) at each end.
    const LONGEST_MESSAGE: i64 = 350;

    /// Runs `passes` passes between two synthetic counters. A message takes 20 to 320 ns.
    fn exchange(seed: u64, a: Character, b: Character, passes: u64) -> (Bounds, f64) {
        let world = World::new(seed);
        let step = a.step.max(b.step) as i64;
        let (a, b) = (SimClock::new(&world, a), SimClock::new(&world, b));
        let (mut low, mut high) = (Side::new(passes, true), Side::new(passes, false));
        for _ in 0..passes {
            let sent = a.read_ordered();
            world.pass_ns(20.0 + world.random_below(300) as f64);
            high.add(ticks_between(sent, b.read_ordered()));
            let sent = b.read_ordered();
            world.pass_ns(20.0 + world.random_below(300) as f64);
            low.add(ticks_between(a.read_ordered(), sent));
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
            // The width is at most the shortest message in each direction, and the steps.
            prop_assert!(bounds.high - bounds.low < 200 + 4 * step as i64, "{bounds:?}");
        }

        #[test]
        fn counters_of_different_rates_have_a_moving_offset(seed in any::<u64>(), ppm in -5_000.0..5_000.0f64) {
            let fast = Character { hz: 1e9 * (1.0 + ppm / 1e6), ..ahead_by(0) };
            let (bounds, duration_ns) = exchange(seed, ahead_by(0), fast, 4000);
            let moved = duration_ns * ppm / 1e6;
            let (least, most) = (moved.min(0.0) as i64 - 1, moved.max(0.0) as i64 + 1);
            // The bounds contain an offset that the counters had during the run.
            prop_assert!(bounds.low <= most && least <= bounds.high, "{moved}: {bounds:?}");
            if bounds.moving {
                // The bounds are the extremes of the movement, with an error of up to the longest message.
                for beyond in [least - bounds.low, bounds.high - most] {
                    prop_assert!((-LONGEST_MESSAGE..=LONGEST_MESSAGE).contains(&beyond), "{moved}: {bounds:?}");
                }
            }
            // From the end of the first part to the start of the last part, the offset moves by half of `moved`. Two
            // messages cannot hide this movement.
            if moved.abs() > 2.1 * (2 * LONGEST_MESSAGE) as f64 {
                prop_assert!(bounds.moving, "{moved}: {bounds:?}");
            }
        }
    }

    #[test]
    fn equal_counters_never_have_an_offset_in_10_000_runs() {
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

    /// One counter changes after the first of 8 passes.
    #[test]
    fn a_change_within_a_part_is_detected() {
        for by in [800i64, 10_000, -10_000] {
            let (mut low, mut high) = (Side::new(8, true), Side::new(8, false));
            for pass in 0..8 {
                let offset = if pass < 1 { 0 } else { by };
                low.add(offset - 200);
                high.add(offset + 200);
            }
            let bounds = join(&low, &high, 1).unwrap();
            assert!(bounds.moving && bounds.high - bounds.low >= by.abs() - 400, "{by}: {bounds:?}");
        }
    }

    #[test]
    fn one_side_alone_gives_no_bounds() {
        let mut side = Side::new(10, true);
        side.add(5);
        assert_eq!(join(&side, &Side::new(10, false), 1), None);
    }

    #[test]
    fn each_part_keeps_its_tightest_bound() {
        let (mut low, mut high) = (Side::new(8, true), Side::new(8, false));
        for bound in [3, 1, 2, 5, 4, 4, 7, 6, 8] {
            low.add(bound);
            high.add(bound);
        }
        assert_eq!(low.parts, [Some(3), Some(5), Some(4), Some(8)]);
        assert_eq!(high.parts, [Some(1), Some(2), Some(4), Some(6)]);
    }

    #[test]
    fn passes_are_those_with_bounds_from_both_sides() {
        let (mut low, mut high) = (Side::new(8, true), Side::new(8, false));
        for _ in 0..3 {
            low.add(-10);
        }
        for _ in 0..2 {
            high.add(10);
        }
        assert_eq!(join(&low, &high, 1), Some(Bounds { low: -11, high: 11, passes: 2, moving: false }));
    }
}
