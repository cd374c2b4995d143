//! The offset between two CPUs' readings of one clock.
//!
//! Two threads on two CPUs send messages back and forth, and read the clock when they send or receive one. A message
//! cannot arrive before it was sent. So one direction gives an upper bound of the offset, and the other direction gives
//! a lower bound. The narrowest bounds of many passes are used.

mod bounds;

pub use bounds::Bounds;

use super::{Budget, Pinned};
use bounds::{Side, join};
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
    /// a thread panicked
    ThreadFailed,
}

/// A message with one reading. It is aligned to two cache lines, so that the messages of the two threads never share
/// one.
#[repr(align(128))]
struct Slot {
    /// number of the pass. It is 0 before the first pass, and `CLOSED` after the sender has stopped
    turn: AtomicU64,
    reading: AtomicU64,
}

const CLOSED: u64 = u64::MAX;

impl Slot {
    const fn new() -> Slot {
        Slot { turn: AtomicU64::new(0), reading: AtomicU64::new(0) }
    }

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
    let (forward, backward) = (Slot::new(), Slot::new());
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
            Err(error) => return (Err(SkewError::NoThread(error)), Ok(Side::lower(0))),
        };
        let side =
            Pinned::to(a).and_then(|pin| pin.if_still_pinned(send_and_wait(clock, &forward, &backward, &budget)));
        forward.turn.store(CLOSED, Ordering::Release);
        let side = side.map_err(|error| SkewError::Cpu(a, error));
        (thread_b.join().unwrap_or(Err(SkewError::ThreadFailed)), side)
    });
    join(&lower?, &upper?, step).ok_or(SkewError::NoAnswer)
}

/// Runs `a`'s side. A lower bound is the reading that `b` sent, minus `a`'s reading on receipt.
fn send_and_wait(clock: &dyn Clock, forward: &Slot, backward: &Slot, budget: &Budget) -> Side {
    let mut side = Side::lower(PASSES);
    for turn in 1..=PASSES {
        forward.send(turn, clock.read_ordered());
        let Some(sent) = backward.receive(turn, budget) else { break };
        side.add(ticks_between(clock.read_ordered(), sent));
    }
    side
}

/// Runs `b`'s side. An upper bound is `b`'s reading on receipt, minus the reading that `a` sent.
fn receive_and_answer(clock: &dyn Clock, forward: &Slot, backward: &Slot, budget: &Budget) -> Side {
    let mut side = Side::upper(PASSES);
    for turn in 1..=PASSES {
        let Some(sent) = forward.receive(turn, budget) else { break };
        side.add(ticks_between(sent, clock.read_ordered()));
        backward.send(turn, clock.read_ordered());
    }
    side
}

#[cfg(all(test, target_os = "linux"))]
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
        let slot = Slot::new();
        slot.send(3, 42);
        assert_eq!(slot.receive(3, &budget), Some(42));
        slot.turn.store(CLOSED, Ordering::Release);
        assert_eq!(slot.receive(4, &budget), None);
    }

    #[test]
    fn waiting_for_a_message_ends_with_the_budget() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let slot = Slot::new();
        slot.send(3, 42);
        assert_eq!(slot.receive(4, &budget), None);
    }

    #[test]
    fn a_sender_without_answers_has_no_bounds() {
        let stop = AtomicBool::new(true);
        let budget = Budget::new(Nanos::from_secs(60.0), &stop);
        let (forward, backward) = (Slot::new(), Slot::new());
        let lower = send_and_wait(&System::default(), &forward, &backward, &budget);
        assert_eq!(forward.turn.load(Ordering::Relaxed), 1);
        let upper = receive_and_answer(&System::default(), &backward, &forward, &budget);
        assert_eq!(join(&lower, &upper, 1), None);
    }
}
