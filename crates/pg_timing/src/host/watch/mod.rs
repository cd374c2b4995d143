//! Watches this machine's clocks: takes one short sample per interval.

mod drift;
mod machine;
mod readings;
#[cfg(test)]
pub mod tests;

pub use machine::{LiveMachine, Machine, STOP_CHECK, State};
pub use readings::push;

use crate::host::survey::clocks::Instruments;
use crate::report::*;
use drift::{CounterWatch, SkewWatch};
use readings::{Pace, Window};
use std::time::Instant;
use timing_clock::{REFERENCE_NAME, Rate};

/// What one interval showed.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// time of day in seconds since 1970
    pub at: f64,
    /// the facts, and the figures of the last intervals; without findings
    pub report: Report,
    /// the clocks' figures of this interval only: one entry per clock and reading. It is empty if no clock was read
    pub interval: Vec<ClockReport>,
    /// new messages about clocks in the kernel log
    pub messages: Vec<String>,
    /// the clock source changed: its name before and now
    pub clocksource_change: Option<(String, String)>,
    /// number of suspends
    pub suspends: u64,
    /// how much CLOCK_BOOTTIME gained on CLOCK_MONOTONIC: the duration of the suspends, if the kernel knows it
    pub suspended_s: Option<f64>,
    /// how much the hardware clock gained on the time since boot: the hypervisor paused the machine
    pub paused_s: Option<f64>,
    /// signs that the virtual machine was restored, cloned or moved
    pub restored: Option<String>,
    pub offset_steps: Vec<OffsetStep>,
    /// change of the counter's rate
    pub rate_change_ppm: Option<f64>,
    pub counter: Option<Rate>,
    pub collectors: Vec<Collector>,
    pub own: OwnUse,
}

/// A sudden change of the offset between two clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetStep {
    pub clock: &'static str,
    pub reference: &'static str,
    /// positive if the clock jumped ahead
    pub by_ns: f64,
    /// bound on the error of `by_ns`
    pub error_ns: f64,
}

/// The facts of the host are read again after this many intervals, because files can change without a sign.
const FACTS_EVERY: u64 = 240;

/// The state that one sample needs from the previous ones.
pub struct Watch<M> {
    pub machine: M,
    interval_s: f64,
    instruments: Instruments,
    /// facts of the host; changes add to them
    facts: Report,
    window: Window,
    counter: CounterWatch,
    skew: SkewWatch,
    samples: u64,
    state: State,
    pace: Pace,
    /// the clocks' figures of the last reading
    figures: Vec<ClockReport>,
    /// whether the counter was judged with a rate, since the facts were read
    judged: Option<bool>,
    log_readable: bool,
    /// duration of the pauses between two readings in one sample
    pub requested_s: f64,
}

impl<M: Machine> Watch<M> {
    pub fn new(mut machine: M, interval_s: f64) -> Watch<M> {
        let facts = machine.facts();
        let instruments = machine.instruments();
        Watch {
            interval_s,
            instruments,
            window: Window::new(&facts.clocksource),
            counter: CounterWatch::default(),
            skew: SkewWatch::default(),
            samples: 0,
            state: machine.state(),
            pace: Pace::new(interval_s),
            figures: Vec::new(),
            judged: None,
            log_readable: true,
            requested_s: 0.0,
            facts,
            machine,
        }
    }

    /// Returns the names of the clocks that are compared, each with its reference.
    pub fn pairs(&self) -> Vec<(&'static str, &'static str)> {
        let counter = self.instruments.counter.is_ok().then_some((COUNTER, REFERENCE_NAME));
        self.instruments.offsets.iter().map(|offset| (offset.clock, offset.reference)).chain(counter).collect()
    }

    /// Takes a sample. It lasts some milliseconds.
    pub fn sample(&mut self) -> Sample {
        let mut sample = Sample { at: self.machine.unix_time(), ..Sample::default() };
        let clocksource = self.read_clocksource(&mut sample);
        let is_log_other = self.read_kernel_log(&mut sample);
        let before = std::mem::replace(&mut self.state, self.machine.state());
        self.state.compare(&before, &mut sample);
        // While the hypervisor changes the marker, it cannot be read.
        self.state.vmclock_disruption = self.state.vmclock_disruption.or(before.vmclock_disruption);
        let changed = sample.clocksource_change.is_some() || sample.restored.is_some();
        let is_due = self.samples.is_multiple_of(FACTS_EVERY);
        if changed || !sample.messages.is_empty() || is_log_other || is_due {
            self.facts = self.machine.facts();
            self.judged = None;
        }
        self.facts.host.ntp = self.state.ntp.clone();
        // The previous instruments see what happened since the last sample, for example a suspend after which the kernel uses
        // another clock source.
        let offsets_s = self.compare_offsets(&mut sample);
        if changed {
            self.instruments = self.machine.instruments();
            self.instruments.offsets.iter_mut().for_each(|offset| offset.meter.sample());
            self.counter = CounterWatch::default();
            self.pace.skip = 0;
        }
        self.samples += 1;
        self.facts.clocksource = Clocksource { before: self.window.clocksource_before(), ..clocksource };
        self.compare_counter(&mut sample, offsets_s);
        self.read_clocks(&mut sample);
        // Firmware can change the counters of CPUs while the machine is suspended.
        let changed = changed || sample.suspends > 0 || sample.suspended_s.is_some();
        sample.collectors.extend(self.compare_cpus(changed));
        self.judge_counter(sample.rate_change_ppm.is_some());
        sample.report = self.report();
        sample.counter = self.counter.rate;
        sample.own = self.machine.own_use();
        sample
    }

    /// Reads the clocks once more, after a pause, to confirm what the sample showed. The figures are those of the calmer of
    /// both readings.
    pub fn confirm(&mut self, sample: &mut Sample) {
        pause(&mut self.machine, self.interval_s, &mut self.requested_s);
        let first = self.figures.clone();
        self.pace.skip = 0;
        self.read_clocks(sample);
        for (now, first) in self.figures.iter_mut().zip(first) {
            if first.cost_ns() < now.cost_ns() || now.cost_ns().is_none() {
                *now = first;
            }
        }
        sample.report = self.report();
    }

    fn read_clocksource(&mut self, sample: &mut Sample) -> Clocksource {
        let start = Instant::now();
        let clocksource = self.machine.clocksource();
        let error = clocksource.current.get().err().map(String::from);
        sample.collectors.push(collector("clocksource", start, error));
        sample.clocksource_change = self.window.add_clocksource(&clocksource);
        clocksource
    }

    /// Returns whether the log is readable again, or not any more. It then has old messages that no event reports.
    fn read_kernel_log(&mut self, sample: &mut Sample) -> bool {
        let start = Instant::now();
        let messages = self.machine.kernel_messages();
        let was_readable = std::mem::replace(&mut self.log_readable, messages.is_ok());
        sample.collectors.push(collector("kernel_log", start, messages.as_ref().err().cloned()));
        sample.messages = messages.unwrap_or_default();
        was_readable != self.log_readable
    }

    /// Compares the kernel's clocks with each other. Returns the duration in seconds.
    fn compare_offsets(&mut self, sample: &mut Sample) -> f64 {
        let start_s = self.machine.monotonic_s();
        let offsets = &mut self.instruments.offsets;
        offsets.iter_mut().for_each(|offset| offset.meter.sample());
        sample.offset_steps = drift::steps(offsets);
        let suspend = sample.offset_steps.iter().find(|step| step.clock == "boottime" && step.by_ns > 0.0);
        sample.suspended_s = suspend.map(|step| step.by_ns / 1e9);
        offsets.iter_mut().for_each(|offset| offset.meter.keep_last(readings::LENGTH));
        self.machine.monotonic_s() - start_s
    }

    /// Compares the counter with the reference clock. `offsets_s` is the duration of the other comparisons. Pauses are not part
    /// of the collector's duration.
    fn compare_counter(&mut self, sample: &mut Sample, offsets_s: f64) {
        let start_s = self.machine.monotonic_s();
        let mut paused_s = 0.0;
        if let Ok(meter) = &mut self.instruments.counter {
            meter.sample();
            let explained = sample.suspends > 0 || sample.suspended_s.is_some();
            let pause = || paused_s += pause(&mut self.machine, self.interval_s, &mut self.requested_s);
            self.counter.evaluate(meter, explained, pause, sample);
        }
        let seconds = offsets_s + self.machine.monotonic_s() - start_s - paused_s;
        sample.collectors.push(Collector { name: "drift", seconds, error: None });
    }

    /// Judges the counter if the facts or its rate changed. That takes milliseconds on a host with many CPUs.
    fn judge_counter(&mut self, is_rate_new: bool) {
        let rate = self.counter.rate;
        if is_rate_new || self.judged != Some(rate.is_some()) {
            let measured = rate.ok_or_else(|| "not measured yet".to_string());
            self.facts.tsc = self.machine.judge_counter(&self.facts, &measured);
            self.judged = Some(rate.is_some());
        }
    }

    /// Returns the report without findings: the facts and the figures of the last intervals.
    fn report(&self) -> Report {
        let mut report = self.facts.clone();
        report.measured_seconds = self.window.measured_s();
        report.clocks = self.window.apply(&self.figures);
        report.activity = self.window.activity();
        report.drift = self.instruments.offset_drifts().chain(self.counter.drift()).collect();
        report.cpus.skew = self.skew.bounds.clone();
        report.cpus.skew_unavailable = self.skew.unavailable.clone();
        report
    }
}

/// A confirmation comes this much later. Another program that disturbs a reading has then often ended.
const CONFIRM_AFTER_S: f64 = 1.0;

/// Waits before a confirmation. Returns the duration in seconds.
fn pause(machine: &mut impl Machine, interval_s: f64, requested_s: &mut f64) -> f64 {
    let pause_s = (interval_s / 4.0).min(CONFIRM_AFTER_S);
    *requested_s += pause_s;
    let start_s = machine.monotonic_s();
    machine.sleep(pause_s);
    machine.monotonic_s() - start_s
}

/// Returns the record of a collector that began at `start`.
fn collector(name: &'static str, start: Instant, error: Option<String>) -> Collector {
    Collector { name, seconds: start.elapsed().as_secs_f64(), error }
}
