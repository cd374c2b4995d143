//! `drift`: did the clocks keep step with each other over the run?

use crate::human::duration;
use crate::report::{Drift, DriftStep, Finding, Fix, Report, SYSTEM, Severity, finding_id};

/// Linux lets NTP slew by at most 500 ppm: whoever needs nearly all of it has a clock that is broken.
const NEAR_THE_LIMIT_PPM: f64 = 400.0;
/// Quartz that warms up changes by about 1 ppm in minutes; a counter that bends by more, beyond
/// what the looks may be off, does not keep one rate.
const QUARTZ_PPM: f64 = 5.0;

/// What NTP does moves by more than this; below, it is the looks that differ.
const NOTICEABLE_PPM: f64 = 0.1;

const ID: &str = finding_id::DRIFT;

pub fn check(report: &Report) -> Finding {
    let of = |name: &str| report.drift.iter().find(|drift| drift.clock == name);
    let counter = of(&report.tsc.counter);
    let suspended = of("boottime").map(|drift| drift.steps.as_slice()).unwrap_or_default();
    // A nap inside one second of the hardware's clock counts as no time, but it counts.
    let naps = report.activity.known().and_then(|activity| activity.suspends).unwrap_or(0);
    let slept = Slept { steps: suspended, times: usize::try_from(naps).unwrap_or(usize::MAX) };
    if let Some(finding) = counter.and_then(|counter| counter_alarm(counter, &slept)) {
        return finding;
    }
    let Some(system) = of(SYSTEM) else {
        return Finding::unknown(ID, "how the clocks run against each other was not measured");
    };
    if let Some(step) = system.steps.first() {
        let summary = format!("PostgreSQL's clock jumped by {} against {}", duration(step.by_ns), system.reference);
        return Finding::new(ID, Severity::Critical, summary)
            .evidence(format!("{:.1} s into the run", step.at_seconds))
            .why("a span that the jump falls into comes out wrong by as much");
    }
    if system.rate_ppm.abs() - system.uncertainty_ppm > NEAR_THE_LIMIT_PPM {
        let summary = format!("NTP slews this host's clock by {:+.0} ppm, near the most that it can", system.rate_ppm);
        return Finding::new(ID, Severity::Warning, summary)
            .evidence(rate(system))
            .why("the host's own clock runs wrong by so much that NTP hardly keeps it: its clock source, or the host below, is at fault")
            .fix(Fix::new("look at what chrony or ntpd says of the drift").command("chronyc tracking"));
    }
    let told = match (suspended.first(), slewed(system)) {
        (Some(step), _) => format!("the machine was suspended for {} during the run", duration(step.by_ns)),
        (None, _) if naps > 0 => "the machine was suspended during the run, for less than a second".into(),
        (None, true) => format!("NTP slews PostgreSQL's clock by {:+.1} ppm, which is what it is for", system.rate_ppm),
        (None, false) => {
            format!("the clocks kept step with each other within {:.2} ppm", system.uncertainty_ppm.max(0.01))
        }
    };
    let finding = Finding::ok(ID, told).evidence(rate(system));
    counter.map(rate).into_iter().fold(finding, Finding::evidence)
}

/// When the machine slept, as far as the clock that goes on in a suspend has seen it, and how often.
struct Slept<'a> {
    steps: &'a [DriftStep],
    times: usize,
}

/// The counter is compared with a clock that nobody slews: any change of its rate is its own.
fn counter_alarm(counter: &Drift, slept: &Slept) -> Option<Finding> {
    let during_suspend = |step: &&DriftStep| slept.steps.iter().any(|s| (s.at_seconds - step.at_seconds).abs() < 1.0);
    let unexplained = counter.steps.iter().filter(|step| !during_suspend(step));
    // Each further suspend explains one more step.
    let own: Vec<&DriftStep> = unexplained.skip(slept.times.saturating_sub(slept.steps.len())).collect();
    let finding = if let Some(step) = own.first() {
        let summary = format!(
            "the counter jumped by {} against {}: a virtual machine that was paused or restored, or a broken counter",
            duration(step.by_ns),
            counter.reference
        );
        own.iter().fold(Finding::new(ID, Severity::Critical, summary), |finding, step| {
            finding.evidence(format!(
                "{:.1} s into the run: {} +- {}",
                step.at_seconds,
                duration(step.by_ns),
                duration(step.error_ns)
            ))
        })
    } else if counter.bend_ppm > QUARTZ_PPM {
        let summary = format!("the counter's rate changed by {:.1} ppm during the run", counter.bend_ppm);
        Finding::new(ID, Severity::Warning, summary).evidence(rate(counter))
    } else {
        return None;
    };
    Some(
        finding
            .why("a server that times with the counter (PostgreSQL 19's tsc) measures wrong spans: its rate is measured once, at start")
            .fix(
                Fix::new("after a migration or a suspend, restart the server; if it comes again, time with the system clock")
                    .command("ALTER SYSTEM SET timing_clock_source = 'system'; SELECT pg_reload_conf()")
                    .undo("ALTER SYSTEM RESET timing_clock_source; SELECT pg_reload_conf()"),
            ),
    )
}

fn slewed(system: &Drift) -> bool {
    system.rate_ppm.abs() > system.uncertainty_ppm + NOTICEABLE_PPM
}

fn rate(drift: &Drift) -> String {
    format!(
        "{} against {}: {:+.3} ppm +- {:.3} over {:.1} s",
        drift.clock, drift.reference, drift.rate_ppm, drift.uncertainty_ppm, drift.over_seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Activity, COUNTER, Fact, Origin};

    fn drift(clock: &str, rate_ppm: f64) -> Drift {
        Drift {
            clock: clock.into(),
            reference: "CLOCK_MONOTONIC_RAW".into(),
            rate_ppm,
            uncertainty_ppm: 0.02,
            bend_ppm: 0.0,
            steps: Vec::new(),
            over_seconds: 3.6,
        }
    }

    fn judged(drifts: Vec<Drift>) -> Finding {
        check(&Report { drift: drifts, ..Report::empty(Origin::Measured, "") })
    }

    fn step(by_ns: f64) -> DriftStep {
        DriftStep { at_seconds: 2.0, by_ns, error_ns: 50.0 }
    }

    #[test]
    fn a_slew_is_named_and_is_no_alarm() {
        let finding = judged(vec![drift(SYSTEM, -14.2)]);
        assert_eq!(finding.severity, Severity::Ok);
        assert!(finding.summary.contains("NTP slews"), "{finding:?}");
        assert_eq!(judged(vec![drift(SYSTEM, 480.0)]).severity, Severity::Warning);
        assert_eq!(judged(vec![drift(SYSTEM, 0.01)]).severity, Severity::Ok);
    }

    #[test]
    fn a_step_of_the_counter_is_told_from_a_suspend() {
        let stepped = Drift { steps: vec![step(-3e9)], ..drift(COUNTER, 0.0) };
        assert_eq!(judged(vec![drift(SYSTEM, 0.0), stepped.clone()]).severity, Severity::Critical);
        let slept = Drift { steps: vec![step(3e9)], ..drift("boottime", 0.0) };
        let finding = judged(vec![drift(SYSTEM, 0.0), stepped, slept]);
        assert_eq!(finding.severity, Severity::Ok);
        assert!(finding.summary.contains("suspended for 3.0 s"), "{finding:?}");
    }

    #[test]
    fn a_nap_that_boottime_does_not_see() {
        let napped = |steps: usize, suspends| {
            let counter = Drift { steps: vec![step(1.1e8); steps], ..drift(COUNTER, 0.0) };
            let activity = Fact::Known(Activity { suspends: Some(suspends), ..Activity::default() });
            let report = Report::empty(Origin::Measured, "");
            check(&Report { drift: vec![drift(SYSTEM, 0.0), counter], activity, ..report })
        };
        assert_eq!(napped(1, 0).severity, Severity::Critical);
        let one = napped(1, 1);
        assert!(one.severity == Severity::Ok && one.summary.contains("less than a second"), "{one:?}");
        assert_eq!(napped(2, 1).severity, Severity::Critical, "one nap does not explain two steps");
    }

    #[test]
    fn a_counter_that_bends() {
        let bent = Drift { bend_ppm: 50.0, ..drift(COUNTER, 25.0) };
        assert_eq!(judged(vec![drift(SYSTEM, 0.0), bent]).severity, Severity::Warning);
    }
}
