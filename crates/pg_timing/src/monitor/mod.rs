//! The monitor: takes a sample per interval, notices what changed, and keeps the state that its outputs show.
//!
//! | file | what it does |
//! |---|---|
//! | `events` | the events of a sample, and the counts since the start |
//! | `server` | observes the server of `--server` |
//! | `http` | the endpoint that Prometheus scrapes |
//! | `files` | lines that wait for their output, and the files of `--events` and `--textfile` |
//! | `openmetrics` | the metrics |
//! | `screen` | the live screen |

mod events;
pub mod files;
pub mod http;
pub mod openmetrics;
pub mod screen;
pub mod server;
#[cfg(test)]
mod tests;

pub use server::ServerFigures;

use crate::host::check::{conclude, judge};
use crate::host::watch::{Machine, Sample, Watch, push};
use crate::report::{EventKind, MonitorEvent, MonitorReport};
use events::{Events, ReadCosts};

/// The number of events that the screen can show.
const KEPT_EVENTS: usize = 200;

/// The state of the monitor.
pub struct Monitor<M> {
    watch: Watch<M>,
    /// the state after the last sample
    report: MonitorReport,
    read_costs: ReadCosts,
    /// the server of `--server`
    server: Option<ServerFigures>,
    /// duration of the last sample, without the pauses that it made itself
    overtime_s: f64,
}

impl<M: Machine> Monitor<M> {
    /// Takes the figures of a server into each sample, if there is one.
    pub fn new(machine: M, interval_s: f64, server: Option<ServerFigures>) -> Monitor<M> {
        let mut watch = Watch::new(machine, interval_s);
        let started_at = watch.machine.unix_time();
        let report = MonitorReport { started_at, interval_s, ..MonitorReport::default() };
        Monitor { watch, report, read_costs: ReadCosts::default(), server, overtime_s: 0.0 }
    }

    /// Takes a sample, and returns its events. `late_s` is the time by which the sample is late, or for which
    /// the machine or this process was stopped since the last sample.
    pub fn sample(&mut self, late_s: f64) -> Vec<MonitorEvent> {
        // A stop during the last sample shows only now.
        let late_s = late_s.max(self.overtime_s);
        let start_s = self.watch.machine.monotonic_s();
        let mut sample = self.watch.sample();
        if sample.clocksource_change.is_some() || sample.restored.is_some() {
            // Another clock source has another cost.
            self.read_costs = ReadCosts::default();
        }
        judge(&mut sample.report);
        let is_new = events::has_new_alarm(&self.report.findings, &sample.report.findings);
        if is_new || self.read_costs.is_suspicious(&sample.report.clocks) {
            self.watch.confirm(&mut sample);
            judge(&mut sample.report);
        }
        let mut events = Events { list: Vec::new(), at: sample.at };
        if self.report.samples == 0 {
            events.add(EventKind::MonitorStarted, "pg_timing monitor started");
        }
        if let Some((server, collector)) = self.server.as_ref().and_then(|server| server.latest(late_s)) {
            events::add_new_plans(&mut events, &self.report, &server);
            self.report.server = Some(server);
            sample.collectors.push(collector);
        }
        events::add_events(&mut events, &sample, &self.report, late_s);
        // If the clocks were not read in this interval, their figures are old.
        if !sample.interval.is_empty() {
            self.read_costs.update(&sample.report.clocks, &mut events);
        }
        events::update_findings(&mut self.report.findings, &mut sample.report.findings, &mut events);
        conclude(&mut sample.report);
        self.store(sample, late_s);
        self.overtime_s = self.watch.machine.monotonic_s() - start_s - std::mem::take(&mut self.watch.requested_s);
        self.record(events.list)
    }

    /// Returns the event of the monitor's end.
    pub fn stop(&mut self) -> Vec<MonitorEvent> {
        let mut events = Events { list: Vec::new(), at: self.watch.machine.unix_time() };
        events.add(EventKind::MonitorStopped, "pg_timing monitor stopped");
        self.record(events.list)
    }

    fn store(&mut self, sample: Sample, late_s: f64) {
        events::add_counts(&mut self.report, &sample, &self.watch.pairs(), late_s);
        let report = &mut self.report;
        report.samples += 1;
        report.sampled_at = sample.at;
        report.now = sample.report;
        report.counter = sample.counter;
        report.own = sample.own;
        for collector in sample.collectors {
            match report.collectors.iter_mut().find(|known| known.name == collector.name) {
                Some(known) => *known = collector,
                None => report.collectors.push(collector),
            }
        }
    }

    fn record(&mut self, events: Vec<MonitorEvent>) -> Vec<MonitorEvent> {
        for event in &events {
            *self.report.event_counts.entry(event.event).or_default() += 1;
            push(&mut self.report.events, KEPT_EVENTS, event.clone());
        }
        events
    }
}

/// Takes this number of samples, or samples until `stopped` returns true. `publish` receives the state and the new events.
pub fn run<M: Machine>(
    monitor: &mut Monitor<M>,
    samples: Option<u64>,
    stopped: impl Fn() -> bool,
    mut publish: impl FnMut(&MonitorReport, &[MonitorEvent]),
) {
    let is_last = |monitor: &Monitor<M>| samples.is_some_and(|samples| monitor.report.samples >= samples);
    let interval_s = monitor.report.interval_s;
    let mut due_s = monitor.watch.machine.monotonic_s();
    let mut late_s = 0.0;
    while !stopped() && !is_last(monitor) {
        let events = monitor.sample(late_s);
        let sampled_s = monitor.watch.machine.monotonic_s();
        publish(&monitor.report, &events);
        let now_s = monitor.watch.machine.monotonic_s();
        // Samples that are missed are not taken later.
        due_s += interval_s * ((now_s - due_s) / interval_s).floor().max(0.0) + interval_s;
        if !is_last(monitor) {
            let stopped_s = monitor.watch.machine.sleep(due_s - now_s);
            // A stop that ends before the next sample is due does not delay that sample.
            // The same applies to a stop while the outputs were written.
            late_s = stopped_s.max(now_s - sampled_s).max(monitor.watch.machine.monotonic_s() - due_s);
        }
    }
    let events = monitor.stop();
    publish(&monitor.report, &events);
}
