//! How far two CPUs' readings of one clock are apart.
//!
//! Two threads, each on its CPU, pass a token to and fro and read the clock on each pass. A message
//! is never received before it was sent: what `b` reads on receipt is at least `b`'s offset above
//! what `a` read before sending, which bounds the offset from above, and the way back bounds it
//! from below. The narrowest of many passes is kept.

mod bounds;

pub use bounds::Bounds;

use super::{Budget, Pinned};
use crate::human::reason;
use bounds::{Side, join};
use std::sync::atomic::{AtomicU64, Ordering};
use timing_clock::{Clock, Nanos, ticks_between};

/// Passes wanted: the narrowest of so many varies by a few ticks from run to run.
const PASSES: u64 = 4000;

/// One reading to pass on. Two cache lines apart, so that the two threads' lines do not mix.
#[repr(align(128))]
struct Slot {
    /// the number of the pass, 0 before the first, `OVER` when the sender has left
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

    /// Waits for that pass. `None` if the other side has left or time is up.
    fn receive(&self, turn: u64, budget: &Budget) -> Option<u64> {
        // The budget is a system call: asked about every 20 us of waiting.
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

/// Bounds the offset between CPUs `a` and `b`, within `limit`. `step` is the clock's, in ticks. The
/// error says why there is none.
pub fn skew_between<C: Clock + Sync>(
    clock: &C,
    step: i64,
    (a, b): (usize, usize),
    budget: &Budget,
    limit: Nanos,
) -> Result<Bounds, String> {
    let budget = budget.part(limit);
    let (there, back) = (Slot::new(), Slot::new());
    let (at_most, at_least) = std::thread::scope(|threads| {
        let far = threads.spawn(|| {
            let side = Pinned::to(b).and_then(|pin| pin.held(receive_and_answer(clock, &there, &back, &budget)));
            back.turn.store(OVER, Ordering::Release);
            side.map_err(|e| format!("CPU {b}: {}", reason(&e)))
        });
        let side = Pinned::to(a).and_then(|pin| pin.held(send_and_wait(clock, &there, &back, &budget)));
        there.turn.store(OVER, Ordering::Release);
        let side = side.map_err(|e| format!("CPU {a}: {}", reason(&e)));
        (far.join().unwrap_or_else(|_| Err("its thread failed".into())), side)
    });
    join(&at_least?, &at_most?, step).ok_or_else(|| format!("CPUs {a} and {b} did not answer each other in time"))
}

/// `a`'s side: the offset is at least what b sent less what a then reads.
fn send_and_wait<C: Clock>(clock: &C, there: &Slot, back: &Slot, budget: &Budget) -> Side {
    let mut side = Side::at_least(PASSES);
    for turn in 1..=PASSES {
        there.send(turn, clock.read_ordered());
        let Some(sent) = back.receive(turn, budget) else { break };
        side.note(turn - 1, ticks_between(clock.read_ordered(), sent));
    }
    side
}

/// `b`'s side: the offset is at most what b reads less what a had sent.
fn receive_and_answer<C: Clock>(clock: &C, there: &Slot, back: &Slot, budget: &Budget) -> Side {
    let mut side = Side::at_most(PASSES);
    for turn in 1..=PASSES {
        let Some(sent) = there.receive(turn, budget) else { break };
        side.note(turn - 1, ticks_between(sent, clock.read_ordered()));
        back.send(turn, clock.read_ordered());
    }
    side
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::host::measure::allowed;
    use std::sync::atomic::AtomicBool;
    use timing_clock::System;

    /// The system's clock, ahead by so much on one CPU.
    struct AheadOn {
        cpu: usize,
        by: i64,
    }

    impl Clock for AheadOn {
        fn read(&self) -> u64 {
            // SAFETY: it only tells the CPU.
            let here = unsafe { libc::sched_getcpu() };
            let ahead = if here == self.cpu as i32 { self.by } else { 0 };
            System::default().read().wrapping_add_signed(ahead)
        }
    }

    /// Through the very threads and messages that a check uses.
    #[test]
    fn offsets_between_real_cpus_are_bounded() {
        let cpus = allowed().unwrap();
        let &[a, b, ..] = cpus.as_slice() else {
            eprintln!("NOT TESTED: one CPU only");
            return;
        };
        let stop = AtomicBool::new(false);
        for by in [-1_000_000_000i64, 0, 1_000_000_000] {
            let budget = Budget::new(Nanos::from_secs(20.0), &stop);
            let clock = AheadOn { cpu: b, by };
            let bounds = skew_between(&clock, 1, (a, b), &budget, Nanos::from_secs(10.0)).unwrap();
            assert!(bounds.low <= by && by <= bounds.high, "{by}: {bounds:?}");
            assert!(bounds.high - bounds.low < 500_000_000, "{by}: {bounds:?}");
        }
    }
}
