//! Compares one pair of CPUs from time to time, in turns, because a comparison takes some milliseconds of two CPUs.

use super::Machine;
use crate::report::{Collector, Cpus, Fact, Report, Skew};
use std::time::Instant;
use timing_clock::Rate;

/// A pair is compared after this many intervals: every five minutes by default. After a change, in the next intervals.
const EVERY: u64 = 20;

/// A comparison of a clock fails if another program keeps a CPU busy. It is not repeated at once, because both threads wait
/// actively. After this many failures in a row, one hour by default, the old bounds do not count any more.
const MOST_FAILURES: u32 = 12;

/// The bounds of the pairs that were compared.
#[derive(Default)]
pub struct SkewWatch {
    intervals: u64,
    /// number of comparisons
    compared: usize,
    /// the last bounds of each pair
    pub bounds: Vec<Skew>,
    /// comparisons that failed in a row
    failures: u32,
    /// why the last comparison has no bounds
    pub unavailable: Option<String>,
}

impl SkewWatch {
    /// Compares the next pair of CPUs, if it is time. Returns the duration, and why there are no bounds.
    pub fn sample(
        &mut self,
        machine: &mut impl Machine,
        facts: &Report,
        rate: Option<Rate>,
        changed: bool,
    ) -> Option<Collector> {
        if changed {
            // The bounds belong to the previous clock source.
            *self = SkewWatch::default();
        }
        self.intervals += 1;
        let cpus = facts.cpus.allowed.known().cloned().unwrap_or_default();
        // At the start, each pair is compared as soon as possible, one per interval. If that fails, the CPUs are busy.
        let is_start = self.failures == 0 && self.compared < cpus.len().saturating_sub(1);
        let is_due = is_start || self.intervals.is_multiple_of(EVERY);
        let (&first, others) = cpus.split_first().filter(|(_, others)| is_due && !others.is_empty())?;
        let other = others[self.compared % others.len()];
        let start = Instant::now();
        let pair = Cpus { allowed: Fact::Known(vec![first, other]), ..facts.cpus.clone() };
        let result = machine.skew(pair, rate);
        let collector = |error| Collector { name: "skew", seconds: start.elapsed().as_secs_f64(), error };
        let has_failed = result.skew_unavailable.is_some();
        self.failures = if has_failed { self.failures + 1 } else { 0 };
        let is_decided = !has_failed || self.failures >= MOST_FAILURES;
        // The comparison of one clock can fail, and that of another one succeed. The old bounds hold until it is decided.
        let is_replaced = |old: &Skew| is_decided || result.skew.iter().any(|new| new.clock == old.clock);
        self.bounds.retain(|old| old.b != other || !is_replaced(old));
        self.bounds.extend(result.skew);
        if is_decided {
            self.compared += 1;
            self.unavailable = result.skew_unavailable;
        }
        Some(collector(self.unavailable.clone()))
    }
}
