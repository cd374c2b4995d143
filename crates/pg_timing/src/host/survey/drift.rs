//! Looks at the clocks beside each other once a round.

use crate::host::measure::{DriftMeter, Trend, trend};
use crate::report::{Drift, DriftStep, SYSTEM};
#[cfg(any(target_os = "linux", target_os = "android"))]
use timing_clock::Posix;
use timing_clock::{Clock, Counter, Hertz, Nanos, REFERENCE_NAME, Rate, Reference, System};

/// The counter and PostgreSQL's clock against the reference, and the clock that goes on in a suspend.
/// A clock whose step is not known is not looked at: nobody could say how far the looks are off.
pub struct DriftMeters {
    counter: Option<DriftMeter<Counter, Reference>>,
    system: Option<DriftMeter<System, Reference>>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    boottime: Option<DriftMeter<Posix<{ libc::CLOCK_BOOTTIME }>, System>>,
}

/// By how much a clock's value moves at a time, in its ticks, where that was seen.
pub struct Steps {
    pub counter: Option<f64>,
    pub reference: Option<f64>,
    pub system: Option<f64>,
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

    /// Takes a look at each: some 50 us.
    pub fn look(&mut self) {
        if let Some(meter) = &mut self.counter {
            meter.look();
        }
        if let Some(meter) = &mut self.system {
            meter.look();
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(meter) = &mut self.boottime {
            meter.look();
        }
    }

    /// The counter's rate in the longest stretch without a break, if there was one.
    pub fn unbroken_rate(&self) -> Option<Rate> {
        self.counter.as_ref()?.unbroken_rate()
    }

    /// What they show. `counter` is the counter's rate as the whole run gave it: by that its own mean
    /// rate is right, and what is left are its bends and steps.
    pub fn drifts(&self, counter: Option<Hertz>) -> Vec<Drift> {
        let mut drifts = Vec::new();
        let mut add = |clock: &str, reference: &str, trend: Option<Trend>| {
            drifts.extend(trend.map(|trend| drift(clock, reference, &trend)));
        };
        let by_rate = self.counter.as_ref().zip(counter);
        let looks = by_rate.map(|(meter, rate)| meter.looks(rate.nanos(1.0).0));
        add(crate::report::COUNTER, REFERENCE_NAME, looks.and_then(|looks| trend(&looks)));
        add(SYSTEM, REFERENCE_NAME, self.system.as_ref().and_then(|meter| trend(&meter.looks(1.0))));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        add("boottime", SYSTEM, self.boottime.as_ref().and_then(|meter| trend(&meter.looks(1.0))));
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

fn drift(clock: &str, reference: &str, trend: &Trend) -> Drift {
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
