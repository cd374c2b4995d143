//! The cost of pg_test_timing's loop, with its noise.

use super::{Measure, Program};
use crate::report::{Bin, ClockReport};
use read_loops::{GAP_FACTOR, MIN_GAP};

/// The loop's mean includes phases in which everything takes up to twice as long, because other programs use the same core.
/// 10 runs of one second in each format had ratios of 1.94 to 2.13. Two such bounds overlap up to a ratio of 2.33.
const NOISE_SHARE: f64 = 0.4;
/// The work of the loop, without the read, takes 2 to 6 ns here. The loop of PostgreSQL 19 is 2 to 4 ns shorter than that of
/// 9.2 to 18. 10 ns leave room for slower processors.
const WORK_NS: f64 = 10.0;

/// Returns the loop cost. Its lower bound is the cost without interruptions, which the mean includes. If both reports are not
/// from the same program, the loops contain different work.
pub fn cost(clock: &ClockReport, program: Program, other: Program) -> Option<Measure> {
    let printed = clock.loop_ns?;
    let work = if program == other && program != Program::PgTestTiming { 0.0 } else { WORK_NS };
    let (estimate, lowest) = match program {
        // A turn of the loop contains one read, so it does not take less.
        Program::Check => (printed, clock.undisturbed_ns.or(clock.read_ns)),
        _ => {
            (clock.undisturbed_ns.unwrap_or(printed), median(clock).or_else(|| without_interruptions(&clock.histogram)))
        }
    };
    let lowest = lowest.unwrap_or(estimate).min(estimate);
    Measure::within(Some(estimate), lowest * (1.0 - NOISE_SHARE) - work, estimate * (1.0 + NOISE_SHARE) + work)
}

/// Returns the median turn of the loop. A coarse clock shows most turns as 0.
fn median(clock: &ClockReport) -> Option<f64> {
    clock.percentiles.map(|percentiles| percentiles.p50_ns).filter(|ns| *ns > 0.0)
}

/// Returns a lower bound of the mean turn of the loop without interruptions.
fn without_interruptions(rows: &[Bin]) -> Option<f64> {
    let total: f64 = rows.iter().map(|row| row.count as f64).sum();
    let mut running = 0.0;
    let median = rows.iter().find(|row| {
        running += row.count as f64;
        running >= total / 2.0
    })?;
    let longest = (GAP_FACTOR * below_ns(median)).max(MIN_GAP.0);
    let short = rows.iter().map(|row| (smallest_ns(row), row.count as f64)).filter(|(ns, _)| *ns < longest);
    let (sum, count) = short.fold((0.0, 0.0), |(sum, all), (ns, count)| (sum + ns * count, all + count));
    (count > 0.0).then_some(sum / count)
}

fn below_ns(row: &Bin) -> f64 {
    row.le_ns as f64 + 1.0
}

/// Returns the smallest difference that the row counts. Up to PostgreSQL 18 the differences are whole microseconds, and the
/// sum of cut differences is right, because the errors of neighbors cancel.
fn smallest_ns(row: &Bin) -> f64 {
    let unit = if row.ge_ns.is_some() { 1000.0 } else { 1.0 };
    if below_ns(row) > unit { below_ns(row) / 2.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ge_ns: Option<u64>, rows: &[(u64, u64)]) -> Vec<Bin> {
        rows.iter().map(|(le_ns, count)| Bin { le_ns: *le_ns, ge_ns, count: *count }).collect()
    }

    /// 97.5% of the classic readings show the same microsecond. The others show that a turn takes 25 ns.
    #[test]
    fn interruptions_are_not_in_the_lower_bound() {
        let quiet = [(999, 975_000), (1999, 25_000)];
        assert_eq!(without_interruptions(&rows(Some(0), &quiet)), Some(25.0));
        let busy = [(999, 975_000), (1999, 25_000), (1_023_999, 1000)];
        assert_eq!(without_interruptions(&rows(Some(0), &busy)), Some(25.0));
        assert_eq!(without_interruptions(&rows(None, &[(15, 0), (31, 900), (4095, 9)])), Some(16.0));
        assert_eq!(without_interruptions(&[]), None);
    }

    #[test]
    fn a_mean_with_interruptions_is_wide() {
        let histogram = rows(Some(0), &[(999, 975_000), (1999, 25_000), (1_023_999, 1000)]);
        let clock = ClockReport { loop_ns: Some(150.0), histogram, ..ClockReport::default() };
        let cost = cost(&clock, Program::PgTestTimingClassic, Program::PgTestTimingClassic).unwrap();
        assert_eq!((cost.low, cost.high.round()), (15.0, 210.0));
    }
}
