//! One clock, timed by pg_test_timing's loop.

use super::Format;
use crate::host::measure::{Budget, ClassicLoop, ClockMeter, Histogram};
use std::collections::BTreeMap;
use timing_clock::{Hertz, Scale, ticks_between};

/// PostgreSQL 19's titles.
pub const SYSTEM: &str = "System clock source: clock_gettime (CLOCK_MONOTONIC)";
#[cfg(target_arch = "x86_64")]
pub const RDTSCP: &str = "Clock source: RDTSCP";
#[cfg(target_arch = "x86_64")]
pub const RDTSC: &str = "Fast clock source: RDTSC";

/// The result for one clock.
#[derive(Clone, Debug)]
pub struct Timing {
    pub title: &'static str,
    pub loop_ns: f64,
    /// differences between neighboring readings in whole nanoseconds, with their number of occurrences
    pub observed: BTreeMap<u64, u64>,
}

/// The clock went back by this many ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp(pub f64);

impl Warp {
    /// Returns PostgreSQL's message, in the unit that the version uses.
    pub fn text(&self, format: Format) -> String {
        let warp = match format {
            Format::Classic => format!("{} us", (-self.0 / 1e3) as i64),
            _ => format!("{} ns", -self.0 as i64),
        };
        format!("Detected clock going backwards in time.\nTime warp: {warp}\n")
    }
}

/// Reads `clock`, which has `rate` ticks per second, until the budget is spent or the clock goes back.
pub fn time(title: &'static str, clock: &dyn ClockMeter, rate: Hertz, budget: &Budget) -> Result<Timing, Warp> {
    let mut classic = ClassicLoop::default();
    let mut last: Option<u64> = None;
    while budget.go_on() || last.is_none() {
        let block = clock.classic_block(&mut classic);
        let since_last_block = last.map_or(0, |last| ticks_between(last, block.first)).min(0);
        let largest = block.backward.largest.max(since_last_block.unsigned_abs());
        if largest > 0 {
            return Err(Warp(rate.nanos(largest as f64).0));
        }
        last = Some(block.last);
    }
    Ok(Timing {
        title,
        loop_ns: rate.nanos(classic.ticks as f64).0 / classic.reads as f64,
        observed: in_whole_nanos(&classic.differences, rate),
    })
}

fn in_whole_nanos(differences: &Histogram, rate: Hertz) -> BTreeMap<u64, u64> {
    let mut observed = BTreeMap::new();
    let Some(scale) = Scale::from_rate(rate) else { return observed };
    for (ticks, count) in differences.iter() {
        *observed.entry(scale.nanos(ticks)).or_insert(0) += count;
    }
    observed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::measure::Meter;
    use std::sync::atomic::AtomicBool;
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{NANOSECONDS, Nanos};

    fn timed(character: Character) -> Result<Timing, Warp> {
        let world = World::new(5);
        let stop = AtomicBool::new(false);
        let meter = Meter::new("sim", SimClock::new(&world, character), 1.0, false);
        time(SYSTEM, &meter, NANOSECONDS, &Budget::new(Nanos::from_millis(5.0), &stop))
    }

    #[test]
    fn a_clock_without_faults_has_its_cost() {
        let timing = timed(Character::default()).unwrap();
        assert!((timing.loop_ns - 25.0).abs() < 0.5, "{}", timing.loop_ns);
        assert!(timing.observed.keys().all(|ns| (19..=31).contains(ns)), "{:?}", timing.observed);
    }

    #[test]
    fn a_backward_step_ends_the_test_and_has_the_versions_unit() {
        let warp = timed(Character { back: vec![(500, 34_612_000)], ..Character::default() }).unwrap_err();
        assert!((warp.0 - 34_612_000.0).abs() < 100.0, "{warp:?}");
        let text = warp.text(Format::Classic);
        assert!(text.starts_with("Detected clock going backwards in time.\nTime warp: -346"), "{text}");
        assert!(text.ends_with(" us\n"));
        assert!(warp.text(Format::Nineteen).ends_with(" ns\n"));
    }
}
