//! The result of one interval.

use crate::report::{ClockReport, Collector, CounterRate, Origin, OwnUse, Report};

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
