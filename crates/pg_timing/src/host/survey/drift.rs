//! Samples the drift of clocks against each other, once per round.

use crate::host::measure::{DriftMeter, Trend, trend};
use crate::report::{Drift, DriftStep, SYSTEM};
#[cfg(any(target_os = "linux", target_os = "android"))]
use timing_clock::Posix;
use timing_clock::{Clock, Counter, Hertz, Nanos, REFERENCE_NAME, Rate, Reference, System};

/// Compares the counter and PostgreSQL's clock with the reference, and CLOCK_BOOTTIME with PostgreSQL's clock.
///
/// A clock without a known step is left out, because the errors of its samples would be unknown.
pub struct DriftMeters {
    counter: Option<DriftMeter<Counter, Reference>>,
    system: Option<DriftMeter<System, Reference>>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    boottime: Option<DriftMeter<Posix<{ libc::CLOCK_BOOTTIME }>, System>>,
}

/// The steps of the clocks, in their ticks, if they were measured.
pub struct Steps {
    pub counter: Option<f64>,
    pub reference: Option<f64>,
    pub system: Option<f64>,
    /// only Linux has this clock
    #[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
    pub boottime: Option<f64>,
}

impl DriftMeters {
    pub fn new(steps: &Steps) -> DriftMeters {
        DriftMeters {
            counter: Counter::new()
                .ok()
                .and_then(|clock| meter(clock, steps.counter, Reference::default(), steps.reference)),
            system: meter(System::default(), steps.system, Reference::default(), steps.reference),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            boottime: meter(Posix, steps.boottime, System::default(), steps.system),
        }
    }

    /// Takes one sample of each clock, in about 50 us.
    pub fn sample(&mut self) {
        if let Some(meter) = &mut self.counter {
            meter.sample();
        }
        if let Some(meter) = &mut self.system {
            meter.sample();
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(meter) = &mut self.boottime {
            meter.sample();
        }
    }

    /// Returns the counter's rate in the longest period without a break, if there was a break.
    pub fn constant_rate(&self) -> Option<Rate> {
        self.counter.as_ref()?.constant_rate()
    }

    /// Returns the drift of each clock. `counter` is the counter's measured rate. It is subtracted from the counter's
    /// drift, so only changes of its rate and steps remain.
    pub fn drifts(&self, counter: Option<Hertz>) -> Vec<Drift> {
        let mut drifts = Vec::new();
        let mut add = |clock: &str, reference: &str, trend: Option<Trend>| {
            drifts.extend(trend.map(|trend| drift(clock, reference, &trend)));
        };
        let by_rate = self.counter.as_ref().zip(counter);
        let samples = by_rate.map(|(meter, rate)| meter.samples(rate.nanos(1.0).0));
        add(crate::report::COUNTER, REFERENCE_NAME, samples.and_then(|samples| trend(&samples)));
        add(SYSTEM, REFERENCE_NAME, self.system.as_ref().and_then(|meter| trend(&meter.samples(1.0))));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        add("boottime", SYSTEM, self.boottime.as_ref().and_then(|meter| trend(&meter.samples(1.0))));
        drifts
    }
}

fn meter<C: Clock, R: Clock>(
    clock: C,
    step: Option<f64>,
    reference: R,
    reference_step: Option<f64>,
) -> Option<DriftMeter<C, R>> {
    Some(DriftMeter::new(clock, step?, reference, Nanos(reference_step?)))
}

/// Returns the drift as a part of a report, with figures rounded.
pub fn drift(clock: &str, reference: &str, trend: &Trend) -> Drift {
    let round = |x: f64| (x * 1e4).round() / 1e4;
    Drift {
        clock: clock.into(),
        reference: reference.into(),
        rate_ppm: round(trend.rate.0),
        uncertainty_ppm: round(trend.uncertainty.0),
        bend_ppm: round(trend.bend.0),
        steps: trend
            .steps
            .iter()
            .map(|step| DriftStep {
                at_seconds: round(step.at / 1e9),
                by_ns: step.by.round(),
                error_ns: step.error.ceil(),
            })
            .collect(),
        over_seconds: round(trend.over.secs()),
    }
}
