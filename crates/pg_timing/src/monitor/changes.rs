//! What a sample changes: its events, and the counts since the start.

use crate::host::measure::log2_row;
use crate::host::watch::{OffsetStep, Sample};
use crate::human::{self, duration, seconds, times};
use crate::report::{ClockReport, ClockTotals, Collector, EventKind, MonitorEvent, MonitorReport, WatchedClock};

/// The events of one sample, and its time in seconds since 1970.
pub struct Events(pub Vec<MonitorEvent>, pub f64);

impl Events {
    /// Adds an event, and returns it for further figures.
    pub fn add(&mut self, event: EventKind, summary: impl Into<String>) -> &mut MonitorEvent {
        let time = human::utc(self.1);
        let (unix_seconds, summary) = (self.1, summary.into());
        self.0.push(MonitorEvent { time, unix_seconds, event, summary, subject: None, severity: None, value: None });
        self.0.last_mut().expect("one was added")
    }

    /// Adds an event about a clock or a collector.
    pub fn about(&mut self, subject: &str, event: EventKind, value: Option<f64>, summary: String) {
        let event = self.add(event, summary);
        (event.subject, event.value) = (Some(subject.into()), value);
    }
}

/// A sample or a sleep that is later than this shows that the machine or the process was stopped. A busy machine delays a process by
/// some time slices of other programs: less than a second.
const LATE_S: f64 = 2.0;

/// The most messages of the kernel that become events in one interval. A faulty clock can cause thousands.
const MOST_MESSAGES: usize = 10;

/// Adds the events of a sample. `before` is the state before the sample.
pub fn add_events(events: &mut Events, sample: &Sample, before: &MonitorReport, late_s: f64) {
    stops(events, sample, late_s);
    if let Some((from, to)) = &sample.clocksource_change {
        let summary = format!("the clock source changed from {from} to {to}");
        events.about(to, EventKind::ClocksourceChanged, None, summary);
    }
    for message in sample.messages.iter().take(MOST_MESSAGES) {
        events.add(EventKind::KernelMessage, message);
    }
    if let Some(more) = sample.messages.len().checked_sub(MOST_MESSAGES).filter(|more| *more > 0) {
        events.add(EventKind::KernelMessage, format!("and {more} more messages about clocks in the kernel log"));
    }
    for ClockReport { name, backward_steps, largest_backward_ns: ns, .. } in &sample.interval {
        if *backward_steps > 0 {
            let summary = format!("clock {name} went back {}, by up to {}", times(*backward_steps), duration(*ns));
            events.about(name, EventKind::BackwardStep, Some(*ns), summary);
        }
    }
    for step in offset_steps(sample) {
        let direction = if step.by_ns > 0.0 { "ahead" } else { "back" };
        let by = duration(step.by_ns.abs());
        let summary = format!("clock {} jumped {direction} by {by} against {}", step.clock, step.reference);
        events.about(step.clock, EventKind::OffsetStep, Some(step.by_ns), summary);
    }
    if let Some(ppm) = sample.rate_change_ppm {
        let summary = format!("the rate of the CPU's counter changed by {ppm:+.1} ppm");
        events.add(EventKind::RateChanged, summary).value = Some(ppm);
    }
    for Collector { name, error, .. } in &sample.collectors {
        let failed = before.collectors.iter().any(|before| before.name == *name && before.error.is_some());
        let label = if *name == Collector::SERVER { "the server".into() } else { name.replace('_', " ") };
        match error {
            Some(why) if !failed => {
                events.about(name, EventKind::CollectorFailed, None, format!("no figures of {label}: {why}"));
            }
            None if failed => {
                events.about(name, EventKind::CollectorRecovered, None, format!("figures of {label} again"))
            }
            _ => {}
        }
    }
}

/// Returns the steps between clocks. Those of CLOCK_BOOTTIME are suspends, which have their own event.
fn offset_steps(sample: &Sample) -> impl Iterator<Item = &OffsetStep> {
    sample.offset_steps.iter().filter(|step| step.clock != "boottime")
}

/// Adds suspends, pauses and restores.
fn stops(events: &mut Events, sample: &Sample, late_s: f64) {
    if sample.suspends > 0 || sample.suspended_s.is_some() {
        let length = match sample.suspended_s {
            Some(s) => format!(" for {}", seconds(s * 1e9)),
            // The kernel measures it in full seconds of the hardware clock.
            None => " for less than a second".into(),
        };
        events.add(EventKind::Suspend, format!("the machine was suspended{length}")).value = sample.suspended_s;
    } else if let Some(s) = pause_s(sample, late_s) {
        let summary = match sample.paused_s {
            Some(_) => format!("the hypervisor paused the machine for {s:.0} s +- 1 s: the hardware clock went on"),
            None => format!("the machine, or pg_timing, was stopped for {s:.1} s"),
        };
        events.add(EventKind::Pause, summary).value = Some(s);
    }
    if let Some(why) = &sample.restored {
        events.add(EventKind::MachineRestored, why);
    }
}

/// Returns the length of a pause, if there was one.
fn pause_s(sample: &Sample, late_s: f64) -> Option<f64> {
    let suspended = sample.suspends > 0 || sample.suspended_s.is_some();
    sample.paused_s.or((late_s > LATE_S).then_some(late_s)).filter(|_| !suspended)
}

/// The number of samples that the screen can show as a line: an hour by default.
const KEPT_SAMPLES: usize = 240;

/// Adds a sample to the totals. `pairs` are the clocks that are compared.
pub fn add_counts(report: &mut MonitorReport, sample: &Sample, pairs: &[(&str, &str)], late_s: f64) {
    for clock in &sample.interval {
        let known = find(&mut report.clocks, &clock.name);
        add_clock(&mut known.totals, clock);
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
    for step in offset_steps(sample) {
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

fn add_clock(totals: &mut ClockTotals, clock: &ClockReport) {
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
