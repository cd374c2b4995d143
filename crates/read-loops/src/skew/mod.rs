//! The offset between two CPUs' readings of one clock.
//!
//! Two threads, each on its own CPU, pass a token back and forth. They read the clock on each pass. A message cannot be
//! received before it was sent. So the first direction gives an upper bound of the offset, and the other direction gives
//! a lower bound. The narrowest of many passes is kept.

mod bounds;

pub use bounds::Bounds;

use super::{Budget, Pinned};
use bounds::{Side, join};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use timing_clock::{Clock, Nanos, ticks_between};

/// Passes per pair of CPUs. The narrowest of this many varies by only a few ticks from run to run.
const PASSES: u64 = 4000;

/// Why there are no bounds.
#[derive(Debug)]
pub enum SkewError {
    /// a thread could not run on this CPU
    Cpu(usize, io::Error),
    /// the CPUs did not answer each other in time
    NoAnswer,
    /// a thread panicked
    ThreadFailed,
}

/// A message with one reading. The alignment of two cache lines keeps the two threads' messages apart.
#[repr(align(128))]
struct Slot {
    /// number of the pass: 0 before the first, `OVER` after the sender has left
    turn: AtomicU64,
    reading: AtomicU64,
}

const OVER: u64 = u64::MAX;

impl Slot {
    const fn new() -> Slot {
        Slot { turn: AtomicU64::new(0), reading: AtomicU64::new(0) }
    }

    fn send(&self, turn: u64, reading: u64) {
        self.reading.store(reading, Ordering::Relaxed);
        self.turn.store(turn, Ordering::Release);
    }

    /// Waits for the message of pass `turn`. Returns `None` if the sender has left or time is up.
    fn receive(&self, turn: u64, budget: &Budget) -> Option<u64> {
        // The budget makes a system call, so it is checked only about every 20 us.
        for spin in 1u32.. {
            match self.turn.load(Ordering::Acquire) {
                OVER => return None,
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
/// The clock is a trait object, so that this loop is compiled in this crate. The call's cost is far below a message's.
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
        let thread_b = threads.spawn(|| {
            let side = Pinned::to(b)
                .and_then(|pin| pin.if_still_pinned(receive_and_answer(clock, &forward, &backward, &budget)));
            backward.turn.store(OVER, Ordering::Release);
            side.map_err(|error| SkewError::Cpu(b, error))
        });
        let side =
            Pinned::to(a).and_then(|pin| pin.if_still_pinned(send_and_wait(clock, &forward, &backward, &budget)));
        forward.turn.store(OVER, Ordering::Release);
        let side = side.map_err(|error| SkewError::Cpu(a, error));
        (thread_b.join().unwrap_or(Err(SkewError::ThreadFailed)), side)
    });
    join(&lower?, &upper?, step).ok_or(SkewError::NoAnswer)
}

/// Runs `a`'s side. The offset is at least what `b` sent, minus what `a` reads on receipt.
fn send_and_wait(clock: &dyn Clock, forward: &Slot, backward: &Slot, budget: &Budget) -> Side {
    let mut side = Side::lower(PASSES);
    for turn in 1..=PASSES {
        forward.send(turn, clock.read_ordered());
        let Some(sent) = backward.receive(turn, budget) else { break };
        side.add(turn - 1, ticks_between(clock.read_ordered(), sent));
    }
    side
}

/// Runs `b`'s side. The offset is at most what `b` reads on receipt, minus what `a` sent.
fn receive_and_answer(clock: &dyn Clock, forward: &Slot, backward: &Slot, budget: &Budget) -> Side {
    let mut side = Side::upper(PASSES);
    for turn in 1..=PASSES {
        let Some(sent) = forward.receive(turn, budget) else { break };
        side.add(turn - 1, ticks_between(sent, clock.read_ordered()));
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

    /// Uses the same threads and messages as a check.
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
    fn a_cpu_that_does_not_exist_is_named() {
        let stop = AtomicBool::new(false);
        let budget = Budget::new(Nanos::from_secs(1.0), &stop);
        let error = skew_between(&System::default(), 1, (0, 100_000), &budget, Nanos::from_secs(1.0)).unwrap_err();
        assert!(matches!(error, SkewError::Cpu(100_000, _)), "{error:?}");
    }
}
