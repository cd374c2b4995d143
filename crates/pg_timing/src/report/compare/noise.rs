//! The noise of each figure: the bounds within which it moves from run to run although the host is the same.
//!
//! The figures of check are from 12 runs of two seconds within 8 minutes, on a guest with two CPUs that other programs kept
//! busy: interruptions took 2% to 63% of the time. A ratio below is that of the largest and the smallest figure of all runs.
//! Comparisons of any two of these runs show a change only where the verdict of check is another one.

use super::{Measure, Program};
use crate::report::{ClockReport, Gaps};
use crate::statistics::two_deviations;

/// The undisturbed read cost (the 5th percentile) had ratios of 1.03 for PostgreSQL's clocks, and up to 1.07 for the other
/// ones. Two such bounds overlap up to a ratio of 1.1.
const UNDISTURBED_SHARE: f64 = 0.05;
/// The median read cost had ratios of 1.12 to 1.17.
const MEDIAN_SHARE: f64 = 0.09;
/// The cheapest read, of monotonic_coarse, takes 5 ns and varied by 0.9 ns.
const READ_NS: f64 = 0.5;
/// The loop's mean includes phases in which everything takes up to twice as long, because other programs use the same core.
/// 10 runs of one second in each format had ratios of 1.94 to 2.13. Two such bounds overlap up to a ratio of 2.33.
const LOOP_SHARE: f64 = 0.4;
/// The work of pg_test_timing's loop, without the read, takes 2 to 6 ns here. The loop of PostgreSQL 19 is 2 to 4 ns shorter
/// than that of 9.2 to 18. 10 ns leave room for slower processors.
const LOOP_WORK_NS: f64 = 10.0;
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

/// Returns the loop cost. Its lower bound is the cost without interruptions. If both reports are not from the same program,
/// the loops contain different work.
pub fn looped(clock: &ClockReport, program: Program, other: Program) -> Option<Measure> {
    let printed = clock.loop_ns?;
    let work = if program == other && program != Program::PgTestTiming { 0.0 } else { LOOP_WORK_NS };
    let estimate = if program == Program::Check { printed } else { clock.undisturbed_ns.unwrap_or(printed) };
    let read = clock.undisturbed_ns.or(clock.read_ns);
    let low = match (program, read) {
        // A turn of the loop contains one read, so it does not take less.
        (Program::Check, Some(read)) => read.min(printed) * (1.0 - UNDISTURBED_SHARE),
        _ => estimate.min(printed * (1.0 - clock.gaps.as_ref().map_or(0.0, share))) * (1.0 - LOOP_SHARE),
    };
    Measure::within(Some(estimate), low - READ_NS - work, estimate * (1.0 + LOOP_SHARE) + READ_NS + work)
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
