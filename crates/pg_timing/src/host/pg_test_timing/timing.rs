//! One clock, timed by pg_test_timing's loop.

use super::Format;
use crate::host::measure::{Budget, ClassicLoop, ClockMeter, Histogram};
use std::collections::BTreeMap;
use timing_clock::{Hertz, NANOSECONDS, Scale, ticks_between};

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
    /// differences between neighboring readings in whole units, with their number of occurrences
    pub observed: BTreeMap<u64, u64>,
}

/// The unit of the readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    /// Up to version 18, PostgreSQL cuts each reading to whole microseconds and then subtracts.
    Microseconds,
}

impl Unit {
    pub fn of(format: Format) -> Unit {
        if format == Format::Classic { Unit::Microseconds } else { Unit::Nanoseconds }
    }

    fn name(self) -> &'static str {
        if self == Unit::Microseconds { "us" } else { "ns" }
    }
}

/// The clock went back by this many units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp {
    pub amount: u64,
    pub unit: Unit,
}

impl Warp {
    /// Returns PostgreSQL's message.
    pub fn text(&self) -> String {
        format!("Detected clock going backwards in time.\nTime warp: -{} {}\n", self.amount, self.unit.name())
    }
}

/// Reads `clock`, which has `rate` ticks per second, until the budget is spent or the clock goes back. A clock that is
/// read in microseconds must have nanoseconds as ticks.
pub fn time(
    title: &'static str,
    clock: &dyn ClockMeter,
    rate: Hertz,
    unit: Unit,
    budget: &Budget,
) -> Result<Timing, Warp> {
    debug_assert!(unit == Unit::Nanoseconds || rate == NANOSECONDS);
    let mut classic = ClassicLoop::default();
    let mut last: Option<u64> = None;
    while budget.go_on() || last.is_none() {
        let (block, ticks_per_unit) = match unit {
            Unit::Nanoseconds => (clock.classic_block(&mut classic), 1),
            Unit::Microseconds => (clock.classic_block_in_thousands(&mut classic), 1000),
        };
        let since_last_block =
            last.map_or(0, |last| ticks_between(last / ticks_per_unit, block.first / ticks_per_unit)).min(0);
        let largest = block.backward.largest.max(since_last_block.unsigned_abs());
        if largest > 0 {
            let amount = if unit == Unit::Microseconds { largest } else { rate.nanos(largest as f64).0 as u64 };
            // A step of less than 1 ns is a step, too.
            return Err(Warp { amount: amount.max(1), unit });
        }
        last = Some(block.last);
    }
    Ok(Timing {
        title,
        loop_ns: rate.nanos(classic.ticks as f64).0 / classic.reads as f64,
        observed: match unit {
            Unit::Nanoseconds => in_whole_nanos(&classic.differences, rate),
            Unit::Microseconds => classic.differences.iter().collect(),
        },
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
    use timing_clock::Nanos;
    use timing_clock::sim::{Character, SimClock, World};

    fn timed(character: Character, unit: Unit) -> Result<Timing, Warp> {
        let world = World::new(5);
        let stop = AtomicBool::new(false);
        let meter = Meter::new("sim", SimClock::new(&world, character), 1.0, false);
        time(SYSTEM, &meter, NANOSECONDS, unit, &Budget::new(Nanos::from_millis(5.0), &stop))
    }

    #[test]
    fn a_clock_without_faults_has_its_cost() {
        let timing = timed(Character::default(), Unit::Nanoseconds).unwrap();
        assert!((timing.loop_ns - 25.0).abs() < 0.5, "{}", timing.loop_ns);
        assert!(timing.observed.keys().all(|ns| (19..=31).contains(ns)), "{:?}", timing.observed);
    }

    /// PostgreSQL's documentation shows 72% in this row at 722.92 ns per loop.
    #[test]
    fn in_microseconds_the_second_row_is_the_loop_time_and_no_duration() {
        let character = Character { cost_ns: 722.92, jitter_ns: 0, ..Character::default() };
        let timing = timed(character, Unit::Microseconds).unwrap();
        let (none, one) = (timing.observed[&0] as f64, timing.observed[&1] as f64);
        assert_eq!(timing.observed.len(), 2, "{:?}", timing.observed);
        assert!((one / (none + one) - 0.7229).abs() < 0.001, "{:?}", timing.observed);
    }

    #[test]
    fn a_backward_step_ends_the_test_and_has_the_versions_unit() {
        let character = Character { origin: 1_000_000_000, back: vec![(500, 34_612_000)], ..Character::default() };
        let warp = timed(character.clone(), Unit::Microseconds).unwrap_err();
        assert!((34_611..=34_612).contains(&warp.amount), "{warp:?}");
        let text = warp.text();
        assert!(text.starts_with("Detected clock going backwards in time.\nTime warp: -346"), "{text}");
        assert!(text.ends_with(" us\n"));
        let warp = timed(character, Unit::Nanoseconds).unwrap_err();
        assert!((34_611_900..=34_612_000).contains(&warp.amount), "{warp:?}");
        assert!(warp.text().ends_with(" ns\n"));
    }
}
