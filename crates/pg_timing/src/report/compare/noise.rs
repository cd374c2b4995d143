//! The noise of each figure, except loops: the bounds within which it moves from run to run although the host is the same.
//!
//! The figures of check are from 12 runs of two seconds within 8 minutes, on a guest with two CPUs that other programs kept
//! busy: interruptions took 2% to 63% of the time. A ratio below is that of the largest and the smallest figure of all runs.
//! Comparisons of any two of these runs show a change only where the verdict of check is another one.

use super::Measure;
use crate::report::{ClockReport, Gaps};
use crate::statistics::two_deviations;

/// The undisturbed read cost (the 5th percentile) had ratios of 1.03 for PostgreSQL's clocks, and up to 1.07 for the other
/// ones. Two such bounds overlap up to a ratio of 1.1.
const UNDISTURBED_SHARE: f64 = 0.05;
/// The median read cost had ratios of 1.12 to 1.17.
const MEDIAN_SHARE: f64 = 0.09;
/// The cheapest read, of monotonic_coarse, takes 5 ns and varied by 0.9 ns.
const READ_NS: f64 = 0.5;
/// Interruptions took 2% to 63% of the time: they depend on the other programs. Only a change by a factor of more than 4 and
/// some percent shows more than that.
const LOST_FACTOR: f64 = 2.0;
const LOST_SHARE: f64 = 0.05;
/// The 99.9th percentile had ratios up to 5.4, because interruptions are a part of it.
const TAIL_FACTOR: f64 = 3.0;
/// With fewer reads, fewer than ten of them are above the 99.9th percentile.
const MIN_TAIL_READS: u64 = 10_000;
/// The measured step had a ratio of 1.00. It is a multiple of the counter's step, which is rounded to ns.
const STEP_SHARE: f64 = 0.1;
/// The kernel measures the rate at each boot. NTP can correct an error of at most 500 ppm (MAXFREQ in the Linux kernel), so
/// two boots differ by less on a host that works. Each report gets half of it.
const RATE_PPM: f64 = 250.0;
/// PostgreSQL 19's own calibration was 243 to 380 ppm off. It stops after ten agreements within 100 ppm, so that 1000 ppm are
/// possible.
const CALIBRATED_RATE_PPM: f64 = 1000.0;
/// Crystals are off by up to 100 ppm and change with the temperature, and NTP corrects that. Each report gets half of it.
const DRIFT_PPM: f64 = 50.0;

/// Returns the undisturbed read cost.
pub fn undisturbed(clock: &ClockReport) -> Option<Measure> {
    let cost = clock.read_ns.and(clock.undisturbed_ns)?;
    Measure::new(cost, cost * UNDISTURBED_SHARE + READ_NS)
}

/// Returns the median read cost. The spread of the buffers is not divided by the root of their number, because what makes a
/// machine slow lasts for many buffers.
pub fn median(clock: &ClockReport) -> Option<Measure> {
    let cost = clock.read_ns?;
    let spread = two_deviations(clock.read_spread_ns.unwrap_or(0.0));
    Measure::new(cost, cost * MEDIAN_SHARE + READ_NS + spread)
}

/// Returns the step, or its bounds.
pub fn step(clock: &ClockReport) -> Option<Measure> {
    match (clock.granularity_ns, clock.granularity_between_ns) {
        (Some(step), _) => Measure::new(step, step * STEP_SHARE),
        (None, Some((low, high))) => Measure::within(None, low, high),
        (None, None) => None,
    }
}

/// Returns the share of the time that interruptions took.
pub fn lost_time(clock: &ClockReport) -> Option<Measure> {
    let share = clock.gaps.as_ref().map(share)?;
    Measure::within(Some(share), share / LOST_FACTOR - LOST_SHARE, share * LOST_FACTOR + LOST_SHARE)
}

fn share(gaps: &Gaps) -> f64 {
    gaps.share.clamp(0.0, 1.0)
}

/// Returns the 99.9th percentile, if there are enough reads.
pub fn tail(clock: &ClockReport) -> Option<Measure> {
    let ns = clock.percentiles.filter(|_| clock.reads >= MIN_TAIL_READS)?.p99_9_ns;
    Measure::within(Some(ns), ns / TAIL_FACTOR, ns * TAIL_FACTOR)
}

/// Returns the counter's rate in kHz. Without an uncertainty it is PostgreSQL 19's.
pub fn rate(khz: f64, uncertainty_ppm: Option<f64>) -> Option<Measure> {
    let ppm = uncertainty_ppm.map_or(CALIBRATED_RATE_PPM, |ppm| ppm + RATE_PPM);
    Measure::new(khz, khz * ppm / 1e6)
}

/// Returns a drift in ppm.
pub fn drift(ppm: f64, uncertainty_ppm: f64) -> Option<Measure> {
    Measure::new(ppm, uncertainty_ppm + DRIFT_PPM)
}
