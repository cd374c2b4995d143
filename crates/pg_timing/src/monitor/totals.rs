//! Counts since the start.

use super::changes::pause_s;
use crate::host::measure::log2_row;
use crate::host::watch::Sample;
use crate::report::{ClockReport, ClockTotals, MonitorReport, WatchedClock};

/// The number of samples that the screen can show as a line: an hour by default.
const KEPT_SAMPLES: usize = 240;

/// Adds a sample to the totals. `pairs` are the clocks that are compared.
pub fn add(report: &mut MonitorReport, sample: &Sample, pairs: &[(&str, &str)], late_s: f64) {
    for clock in &sample.interval {
        let known = find(&mut report.clocks, &clock.name);
        add_counts(&mut known.totals, clock);
        known.largest_gap_ns = clock.gaps.map(|gaps| gaps.largest_ns);
    }
    for clock in &sample.report.clocks {
        let known = find(&mut report.clocks, &clock.name);
        known.unavailable.clone_from(&clock.unavailable);
        known.access_path = clock.access_path;
        known.read_ns = clock.read_ns;
        known.percentiles = clock.percentiles;
        known.granularity_ns = clock.granularity_ns;
        if known.history_ns.len() == KEPT_SAMPLES {
            known.history_ns.pop_front();
        }
        let is_new = sample.interval.iter().any(|read| read.name == clock.name);
        known.history_ns.push_back(clock.read_ns.filter(|_| is_new).map(|ns| ns as f32));
    }
    // Prometheus misses the first step if its counter does not begin with 0.
    for (clock, reference) in pairs {
        report.offset_steps.entry(((*clock).into(), (*reference).into())).or_default();
    }
    // Those of CLOCK_BOOTTIME are suspends.
    for step in sample.offset_steps.iter().filter(|step| step.clock != "boottime") {
        *report.offset_steps.entry((step.clock.into(), step.reference.into())).or_default() += 1;
    }
    report.suspends += sample.suspends.max(u64::from(sample.suspended_s.is_some()));
    report.suspended_s += sample.suspended_s.unwrap_or(0.0);
    if let Some(pause_s) = pause_s(sample, late_s) {
        report.pauses += 1;
        report.paused_s += pause_s;
    }
    report.kernel_messages += sample.messages.len() as u64;
}

fn find<'a>(clocks: &'a mut Vec<WatchedClock>, name: &str) -> &'a mut WatchedClock {
    let at = clocks.iter().position(|clock| clock.name == name).unwrap_or_else(|| {
        clocks.push(WatchedClock { name: name.into(), ..WatchedClock::default() });
        clocks.len() - 1
    });
    &mut clocks[at]
}

fn add_counts(totals: &mut ClockTotals, clock: &ClockReport) {
    totals.backward_steps += clock.backward_steps;
    totals.measured_s += clock.measured_ns().unwrap_or(0.0) / 1e9;
    if let Some(gaps) = clock.gaps {
        totals.gaps += gaps.count;
        totals.gap_s += gaps.total_ns / 1e9;
    }
    for bin in &clock.histogram {
        let row = log2_row(bin.le_ns);
        if totals.histogram.len() <= row {
            totals.histogram.resize(row + 1, 0);
        }
        totals.histogram[row] += bin.count;
    }
}
