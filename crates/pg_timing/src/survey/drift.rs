//! Looks at the clocks beside each other once a round.

use crate::measure::{DriftMeter, Trend, trend, unbroken};
use crate::report::{Drift, DriftStep};
#[cfg(any(target_os = "linux", target_os = "android"))]
use timing_clock::Posix;
use timing_clock::{Counter, Hertz, Nanos, Ppm, REFERENCE_NAME, Rate, Reference, Refused, System};

/// One tick of a nanosecond clock beside one of another.
const FINE: Nanos = Nanos(2.0);

/// The counter and PostgreSQL's clock against the reference, and the clock that goes on in a suspend.
pub struct DriftMeters {
    /// its ticks taken for nanoseconds until the rate is known
    counter: Option<DriftMeter<Counter, Reference>>,
    counter_step: f64,
    system: Option<DriftMeter<System, Reference>>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    boottime: Option<DriftMeter<Posix<{ libc::CLOCK_BOOTTIME }>, System>>,
}

impl DriftMeters {
    /// `counter_step` is one step of the counter, in ticks. Where the counter is denied nothing is
    /// looked at: all these clocks are the vDSO's.
    pub fn new(permission: Result<(), Refused>, counter_step: f64) -> DriftMeters {
        let allowed = permission.ok();
        DriftMeters {
            counter: Counter::new().ok().map(|clock| DriftMeter::new(clock, Reference::default(), 1.0, FINE)),
            counter_step,
            system: allowed.map(|()| DriftMeter::new(System::default(), Reference::default(), 1.0, FINE)),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            boottime: allowed.map(|()| DriftMeter::new(Posix, System::default(), 1.0, FINE)),
        }
    }

    /// Takes a look at each: some 20 us.
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

    /// The counter's rate in the longest stretch without a break, if there was one: a suspend, or a
    /// pause of the virtual machine.
    pub fn unbroken_rate(&self) -> Option<Rate> {
        let looks = &self.counter.as_ref()?.looks;
        let (per_ns, uncertainty) = unbroken(looks)?;
        let rate = Hertz(per_ns * 1e9);
        let steps = Ppm(self.counter_step / per_ns / looks.last()?.at * 1e6);
        Some(Rate { rate, uncertainty: Ppm(uncertainty.0 + steps.0), over: Nanos(looks.last()?.at) })
    }

    /// What they show. `counter` is the counter's rate as the whole run gave it: by that its own mean
    /// rate is right, and what is left are its bends and steps.
    pub fn drifts(&self, counter: Option<Hertz>) -> Vec<Drift> {
        let counter_name = crate::report::COUNTER;
        let mut drifts = Vec::new();
        let mut add = |clock: &str, reference: &str, trend: Option<Trend>| {
            drifts.extend(trend.map(|trend| drift(clock, reference, &trend)));
        };
        add(
            counter_name,
            REFERENCE_NAME,
            self.counter
                .as_ref()
                .zip(counter)
                .and_then(|(meter, rate)| trend(&meter.looks_at(rate.nanos(1.0).0, rate.nanos(self.counter_step).0))),
        );
        add("system", REFERENCE_NAME, self.system.as_ref().and_then(|meter| trend(&meter.looks)));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        add("boottime", "system", self.boottime.as_ref().and_then(|meter| trend(&meter.looks)));
        drifts
    }
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
