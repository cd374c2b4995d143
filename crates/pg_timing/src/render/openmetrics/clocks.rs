//! The metrics of the clocks, of their drift and of the CPUs.

use super::page::Page;
use super::table;
use crate::report::{AccessPath, COUNTER, ClockTotals, MonitorReport};
use std::collections::BTreeMap;

const NS_PER_S: f64 = 1e9;
const PPM: f64 = 1e6;

/// The number of buckets. Their number must not depend on the data, because a bucket that appears later would look like new
/// values. The largest bound is 2^30 - 1 ns, about 1 s: all longer differences are suspends or stops of the machine.
const BUCKETS: usize = 31;

/// Adds the metrics of the clocks, of their drift and of the CPUs.
pub fn add(page: &mut Page, report: &MonitorReport) {
    for clock in &report.clocks {
        let name = clock.name.as_str();
        let seconds = |ns: Option<f64>| ns.map(|ns| ns / NS_PER_S);
        if clock.unavailable.is_none() {
            page.add(&table::CLOCK_INFO, &[name, access(clock.access_path)], 1.0);
        }
        page.add(&table::CLOCK_READ_COST, &[name], seconds(clock.read_ns));
        page.add(&table::CLOCK_LARGEST_GAP, &[name], seconds(clock.largest_gap_ns));
        page.add(&table::CLOCK_GRANULARITY, &[name], seconds(clock.granularity_ns));
        // Before the first sample, nothing was counted.
        if clock.totals.measured_s > 0.0 {
            totals(page, name, &clock.totals);
        }
    }
    if let Some(limits) = report.read_cost_limits_ns {
        page.add(&table::READ_COST_LIMIT, &["warning"], limits.warning / NS_PER_S);
        page.add(&table::READ_COST_LIMIT, &["critical"], limits.critical / NS_PER_S);
    }
    drift(page, report);
    if let Some(counter) = report.counter {
        page.add(&table::TSC_FREQUENCY, &[], counter.hz);
        page.add(&table::TSC_FREQUENCY_ERROR, &[], counter.uncertainty_ppm / PPM);
    }
    for skew in &report.skew {
        // Bounds of b's reading minus a's: a is the reference.
        let labels = [skew.clock.as_str(), &skew.b.to_string(), &skew.a.to_string()];
        page.add(&table::SKEW_LOW, &labels, skew.low_ns / NS_PER_S);
        page.add(&table::SKEW_HIGH, &labels, skew.high_ns / NS_PER_S);
    }
}

fn totals(page: &mut Page, name: &str, totals: &ClockTotals) {
    if !totals.histogram.is_empty() {
        let count = totals.histogram.iter().sum();
        let rows: Vec<(f64, u64)> =
            (0..BUCKETS).map(|n| (bound(n), totals.histogram.get(n).copied().unwrap_or(0))).collect();
        page.add_histogram(&table::CLOCK_READ, name, &rows, count, totals.measured_s);
    }
    page.add(&table::CLOCK_MEASURED, &[name], totals.measured_s);
    page.add(&table::CLOCK_GAPS, &[name], totals.gaps);
    page.add(&table::CLOCK_GAP_SECONDS, &[name], totals.gap_s);
    page.add(&table::CLOCK_BACKWARD_STEPS, &[name], totals.backward_steps);
}

/// Returns the upper bound of a row in seconds: 0, 1, 3, 7, 15 ... ns.
fn bound(row: usize) -> f64 {
    ((1_u64 << row) - 1) as f64 / NS_PER_S
}

fn drift(page: &mut Page, report: &MonitorReport) {
    for drift in &report.drifts {
        let labels = [drift.clock.as_str(), drift.reference.as_str()];
        // The rate of the counter is another metric. Its drift has only steps and changes.
        page.add(&table::DRIFT, &labels, (drift.clock != COUNTER).then_some(drift.rate_ppm / PPM));
        page.add(&table::DRIFT_ERROR, &labels, drift.uncertainty_ppm / PPM);
    }
    // A pair that is compared, but not in the list, has had no steps.
    let compared = report.drifts.iter().map(|drift| ((drift.clock.as_str(), drift.reference.as_str()), 0));
    let mut steps: BTreeMap<(&str, &str), u64> = compared.collect();
    steps.extend(report.offset_steps.iter().map(|((clock, reference), count)| ((&**clock, &**reference), *count)));
    for ((clock, reference), count) in steps {
        page.add(&table::OFFSET_STEPS, &[clock, reference], count);
    }
}

fn access(path: Option<AccessPath>) -> &'static str {
    match path {
        Some(AccessPath::Instruction) => "instruction",
        Some(AccessPath::Vdso) => "vdso",
        Some(AccessPath::Syscall) => "syscall",
        Some(AccessPath::Interposed) => "interposed",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_whole_nanoseconds() {
        assert_eq!([bound(0), bound(1), bound(2), bound(30)], [0.0, 1e-9, 3e-9, 1.073741823]);
    }
}
