//! One clock, timed by the classic loop.

use super::Format;
use crate::host::measure::{BUFFER, Budget, ClassicLoop, Histogram};
use std::collections::BTreeMap;
use timing_clock::{Clock, Hertz, Scale, ticks_between};

/// PostgreSQL 19's titles.
pub const SYSTEM: &str = "System clock source: clock_gettime (CLOCK_MONOTONIC)";
#[cfg(target_arch = "x86_64")]
pub const RDTSCP: &str = "Clock source: RDTSCP";
#[cfg(target_arch = "x86_64")]
pub const RDTSC: &str = "Fast clock source: RDTSC";

/// What one clock showed.
#[derive(Clone, Debug)]
pub struct Timing {
    pub title: &'static str,
    pub loop_ns: f64,
    /// whole nanoseconds between readings next to each other, and how often
    pub observed: BTreeMap<u64, u64>,
}

/// A clock that went back, by so many ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp(pub f64);

impl Warp {
    /// PostgreSQL's message, in the unit of the version.
    pub fn text(&self, format: Format) -> String {
        let warp = match format {
            Format::Classic => format!("{} us", (-self.0 / 1e3) as i64),
            _ => format!("{} ns", -self.0 as i64),
        };
        format!("Detected clock going backwards in time.\nTime warp: {warp}\n")
    }
}

/// Reads `clock`, whose ticks go by at `rate`, until the budget is spent or it goes back.
pub fn time<C: Clock>(title: &'static str, clock: &C, rate: Hertz, budget: &Budget) -> Result<Timing, Warp> {
    let mut classic = ClassicLoop::default();
    let mut last: Option<u64> = None;
    while budget.go_on() || last.is_none() {
        let (first, end, back) = classic.run(clock, BUFFER as u64);
        let between = last.map_or(0, |last| ticks_between(last, first)).min(0);
        let largest = back.largest.max(between.unsigned_abs());
        if largest > 0 {
            return Err(Warp(rate.nanos(largest as f64).0));
        }
        last = Some(end);
    }
    Ok(Timing {
        title,
        loop_ns: rate.nanos(classic.ticks as f64).0 / classic.reads as f64,
        observed: whole_nanos(&classic.differences, rate),
    })
}

fn whole_nanos(differences: &Histogram, rate: Hertz) -> BTreeMap<u64, u64> {
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
    use std::sync::atomic::AtomicBool;
    use timing_clock::sim::{Character, SimClock, World};
    use timing_clock::{NANOSECONDS, Nanos};

    fn timed(character: Character) -> Result<Timing, Warp> {
        let world = World::new(5);
        let stop = AtomicBool::new(false);
        time(SYSTEM, &SimClock::new(&world, character), NANOSECONDS, &Budget::new(Nanos::from_millis(5.0), &stop))
    }

    #[test]
    fn a_clean_clock() {
        let timing = timed(Character::default()).unwrap();
        assert!((timing.loop_ns - 25.0).abs() < 0.5, "{}", timing.loop_ns);
        assert!(timing.observed.keys().all(|ns| (19..=31).contains(ns)), "{:?}", timing.observed);
    }

    #[test]
    fn a_step_back_ends_it_and_is_told_in_the_versions_unit() {
        let warp = timed(Character { back: vec![(500, 34_612_000)], ..Character::default() }).unwrap_err();
        assert!((warp.0 - 34_612_000.0).abs() < 100.0, "{warp:?}");
        let text = warp.text(Format::Classic);
        assert!(text.starts_with("Detected clock going backwards in time.\nTime warp: -346"), "{text}");
        assert!(text.ends_with(" us\n"));
    }
}
