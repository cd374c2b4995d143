//! The result of one interval, and the signs that the machine was suspended, paused, restored or moved.

use super::Machine;
use crate::host::measure::{Step, trend};
use crate::host::survey::clocks::{NO_SLEW, OffsetMeter};
use crate::report::{ClockReport, Collector, CounterRate, Origin, OwnUse, Report};
use timing_clock::Features;

/// What one interval showed.
#[derive(Clone, Debug)]
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
    pub counter: Option<CounterRate>,
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

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            at: 0.0,
            report: Report::empty(Origin::Measured, "not measured yet"),
            interval: Vec::new(),
            messages: Vec::new(),
            clocksource_change: None,
            suspends: 0,
            suspended_s: None,
            paused_s: None,
            restored: None,
            offset_steps: Vec::new(),
            rate_change_ppm: None,
            counter: None,
            collectors: Vec::new(),
            own: OwnUse::default(),
        }
    }
}

/// The machine's state in the last sample.
pub struct Stops {
    suspends: Option<u64>,
    hardware_clock: Option<HardwareClock>,
    features: Option<Features>,
}

/// Readings of the hardware clock, of the time since boot and of the time of day, in seconds.
#[derive(Clone, Copy)]
struct HardwareClock {
    rtc_s: f64,
    boottime_s: f64,
    unix_s: f64,
}

/// The hardware clock has steps of 1 s, and each of the two readings can be late by one step. A difference above this is a
/// pause.
const RTC_STEPS_S: f64 = 2.5;

impl HardwareClock {
    /// Returns whether it shows the time of day.
    fn is_right(&self) -> bool {
        (self.rtc_s - self.unix_s).abs() <= RTC_STEPS_S
    }
}

impl Stops {
    pub fn new(machine: &mut impl Machine) -> Stops {
        Stops { suspends: machine.suspends(), hardware_clock: None, features: machine.features() }
    }

    /// Compares the machine with the last sample.
    pub fn sample(&mut self, machine: &mut impl Machine, sample: &mut Sample) {
        let suspends = machine.suspends();
        sample.suspends = suspends.zip(self.suspends).map_or(0, |(now, before)| now.saturating_sub(before));
        self.suspends = suspends;
        let clock = machine.hardware_clock();
        let unix_s = machine.unix_time();
        let clock = clock.map(|(rtc_s, boottime_s)| HardwareClock { rtc_s, boottime_s, unix_s });
        if let Some((now, before)) = clock.zip(self.hardware_clock) {
            let ahead_s = (now.rtc_s - before.rtc_s) - (now.boottime_s - before.boottime_s);
            // With NTP, the kernel sets a wrong hardware clock to the time of day. A pause makes a right one wrong.
            let was_set = now.is_right() && !before.is_right();
            sample.paused_s = Some(ahead_s).filter(|ahead| *ahead > RTC_STEPS_S && !was_set);
        }
        self.hardware_clock = clock;
        let features = machine.features();
        if features != self.features {
            let what = "the CPU reports other features than before: the virtual machine moved to another host";
            sample.restored = Some(what.into());
        } else if sample.messages.iter().any(|message| message.contains("virtual machine fork")) {
            sample.restored = Some("the kernel noticed that the virtual machine was restored or cloned".into());
        }
        self.features = features;
    }
}

/// Smaller steps are not reported. EXPLAIN prints microseconds.
const VISIBLE_NS: f64 = 1_000.0;

/// Returns the step between the last two samples. If the offset is constant, two samples are enough.
fn last_step(offset: &OffsetMeter) -> Option<Step> {
    let samples = offset.meter.samples(1.0);
    let visible = |step: &Step, slew: f64| step.by.abs() > VISIBLE_NS + step.error + slew;
    if let Some(trend) = trend(offset.slew, &samples) {
        let last = samples.last()?.at;
        return trend.steps.last().copied().filter(|step| step.at == last && visible(step, 0.0));
    }
    let [before, now] = samples[..] else { return None };
    let step = Step { at: now.at, by: now.offset - before.offset, error: before.error + now.error };
    let slew = offset.slew * (now.at - before.at);
    Some(step).filter(|step| offset.slew <= NO_SLEW && visible(step, slew))
}

/// Returns the steps between the last two samples.
pub fn steps(offsets: &[OffsetMeter]) -> Vec<OffsetStep> {
    let step = |offset: &OffsetMeter| {
        let step = last_step(offset)?;
        Some(OffsetStep { clock: offset.clock, reference: offset.reference, by_ns: step.by, error_ns: step.error })
    };
    offsets.iter().filter_map(step).collect()
}

/// Returns the time for which the machine was suspended, if CLOCK_BOOTTIME shows it.
pub fn suspended_s(steps: &[OffsetStep]) -> Option<f64> {
    steps.iter().find(|step| step.clock == "boottime" && step.by_ns > 0.0).map(|step| step.by_ns / 1e9)
}
