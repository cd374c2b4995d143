//! Findings about the right time: `drift`, whether the clocks ran at the same rate during the measurement, and `wall-clock`, the
//! time of day. EXPLAIN ANALYZE does not read the time of day, but logs and `now()` do.

use super::*;

/// Linux lets NTP adjust a clock by at most 500 ppm. A clock that needs almost as much is faulty.
const NEAR_THE_LIMIT_PPM: f64 = 400.0;

/// NTP's own limit. chrony exceeds it by changing the kernel's tick.
const MOST_PPM: f64 = 500.0;

/// Smaller differences come from the errors of the samples, and not from NTP.
const NOTICEABLE_PPM: f64 = 0.1;

pub fn drift(report: &Report) -> Judged {
    let of = |name: &str| report.drift.iter().find(|drift| drift.clock == name);
    let counter = of(&report.tsc.counter);
    let suspended = of("boottime").map(|drift| drift.steps.as_slice()).unwrap_or_default();
    // The kernel measures a suspend in full seconds, so it can have a length of zero.
    let suspends = report.activity.known().and_then(|activity| activity.suspends).unwrap_or(0);
    if let Some(finding) = counter.and_then(|counter| counter_alarm(counter, suspended, suspends)) {
        return Ok(finding);
    }
    let ntp = report.host.ntp.known().map(|ntp| ntp.frequency_ppm);
    if let Some(ppm) = ntp.filter(|ppm| ppm.abs() > MOST_PPM) {
        let what = "look at NTP's correction, and at the TSC's rate in the kernel log";
        return Ok(warning(format!("NTP corrects this host's clock by {ppm:+.0} ppm, beyond its limit of 500 ppm"))
            .evidence(format!("the kernel's NTP state: {ppm:+.3} ppm, by frequency and tick"))
            .why(format!(
                "the kernel's rate for its clock source is wrong by that much. NTP does not correct the counter, so \
                 PostgreSQL 19's TSC would be {:.1}% off",
                ppm.abs() / 1e4
            ))
            .fix(Fix::new(what).command("chronyc tracking")));
    }
    let system = of(SYSTEM).ok_or("the drift was not measured")?;
    if let Some(step) = system.steps.first() {
        let summary = format!("PostgreSQL's clock jumped by {} against {}", duration(step.by_ns), system.reference);
        return Ok(critical(summary)
            .evidence(format!("{:.1} s after the start", step.at_seconds))
            .why("the duration of an interval that contains the jump is wrong by that much"));
    }
    let ppm = system.rate_ppm;
    if ppm.abs() - system.uncertainty_ppm > NEAR_THE_LIMIT_PPM {
        return Ok(warning(format!("NTP adjusts this host's clock by {ppm:+.0} ppm, close to its limit of 500 ppm"))
            .evidence(rate(system))
            .why("without NTP, the clock would be wrong by that much: the clock source of this host, or of the host of this virtual machine, is faulty")
            .fix(Fix::new("look at the drift that chrony or ntpd reports").command("chronyc tracking")));
    }
    let is_adjusted = ppm.abs() > system.uncertainty_ppm + NOTICEABLE_PPM;
    let summary = match suspended.first() {
        Some(step) => format!("the machine was suspended for {} during the measurement", duration(step.by_ns)),
        None if suspends > 0 => "the machine was suspended during the measurement, for less than a second".into(),
        None if is_adjusted => format!("NTP adjusts PostgreSQL's clock by {ppm:+.1} ppm, which is normal"),
        None => format!("the clocks ran at the same rate within {:.2} ppm", system.uncertainty_ppm.max(0.01)),
    };
    Ok(with_severity(Severity::Ok, summary).evidence(rate(system)).evidence_lines(counter.map(rate)))
}

/// Returns the alarm of the counter, if there is one. `suspended`: the steps of CLOCK_BOOTTIME, which goes on during a suspend;
/// `suspends`: the suspends that the kernel counted.
///
/// NTP does not adjust the reference clock, so the counter causes every change of their ratio.
fn counter_alarm(counter: &Drift, suspended: &[DriftStep], suspends: u64) -> Option<Finding> {
    let during_suspend = |step: &&DriftStep| suspended.iter().any(|s| (s.at_seconds - step.at_seconds).abs() < 1.0);
    let unexplained = counter.steps.iter().filter(|step| !during_suspend(step));
    // Each suspend without a step of CLOCK_BOOTTIME explains one more step.
    let explained = usize::try_from(suspends).unwrap_or(usize::MAX).saturating_sub(suspended.len());
    let faults: Vec<&DriftStep> = unexplained.skip(explained).collect();
    let finding = if let Some(step) = faults.first() {
        let by = format!("{} against {}", duration(step.by_ns), counter.reference);
        critical(format!(
            "the counter jumped by {by}: the virtual machine was paused or restored, or the counter is faulty"
        ))
        .evidence_lines(faults.iter().map(|step| {
            let (by, error) = (duration(step.by_ns), duration(step.error_ns));
            format!("{:.1} s after the start: {by} +- {error}", step.at_seconds)
        }))
    } else if counter.bend_ppm > QUARTZ_PPM {
        warning(format!("the counter's rate changed by {:.1} ppm during the measurement", counter.bend_ppm))
            .evidence(rate(counter))
    } else {
        return None;
    };
    let what = "after a migration or a suspend, restart the server; if this happens again, use the system clock";
    let why =
        "PostgreSQL 19's tsc determines the counter's rate only once, when the server starts, so later times are wrong";
    Some(finding.why(why).fix(Fix { what: what.into(), ..system_clock_on_19() }))
}

fn rate(drift: &Drift) -> String {
    format!(
        "{} against {}: {:+.3} ppm +- {:.3} over {:.1} s",
        drift.clock, drift.reference, drift.rate_ppm, drift.uncertainty_ppm, drift.over_seconds
    )
}

/// chrony and ntpd need some minutes after the start until they call the clock synchronized.
const START_S: f64 = 1800.0;

/// `wall-clock`: does the kernel call the time of day synchronized?
pub fn wall_clock(report: &Report) -> Result<Finding, String> {
    if report.host.ntp.known().ok_or("the kernel's NTP state is unknown")?.synchronized {
        return ok("the kernel's wall clock is synchronized");
    }
    if let Some(up) = report.host.uptime_seconds.known().filter(|up| **up < START_S) {
        return Err(format!("the kernel's wall clock is not synchronized yet; the boot was {} ago", uptime(*up)));
    }
    let what = "the kernel's wall clock is not synchronized: times in logs and now() can be wrong; EXPLAIN ANALYZE is not affected";
    let why = "without a time service, a clock drifts by seconds per day, and a restored virtual machine keeps its old time; tools \
               of some hypervisors (VMware, Hyper-V, VirtualBox) set the clock without telling the kernel";
    let fix = Fix::new("start the time service; install one first if there is none")
        .command("sudo timedatectl set-ntp true")
        .undo("sudo timedatectl set-ntp false")
        .risk("the service can move the time of day once by a large step");
    Ok(warning(what).why(why).fix(fix))
}

#[cfg(test)]
mod tests {
    use crate::report::*;

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
        crate::host::check::finding("", super::drift(&Report { drift: drifts, ..Report::empty(Origin::Measured, "") }))
    }

    fn step(by_ns: f64) -> DriftStep {
        DriftStep { at_seconds: 2.0, by_ns, error_ns: 50.0 }
    }

    #[test]
    fn an_adjustment_by_ntp_is_named_and_no_alarm() {
        let finding = judged(vec![drift(SYSTEM, -14.2)]);
        assert_eq!(finding.severity, Severity::Ok);
        assert!(finding.summary.contains("NTP adjusts"), "{finding:?}");
        assert_eq!(judged(vec![drift(SYSTEM, 480.0)]).severity, Severity::Warning);
        assert_eq!(judged(vec![drift(SYSTEM, 0.01)]).severity, Severity::Ok);
    }

    /// chrony also changes the kernel's tick.
    #[test]
    fn a_correction_beyond_the_limit_of_ntp_is_a_warning() {
        let mut report = Report::empty(Origin::Captured, "");
        for (frequency_ppm, severity) in [(499.0, Severity::Unknown), (-74_443.0, Severity::Warning)] {
            report.host.ntp = Fact::Known(Ntp { synchronized: true, frequency_ppm });
            let finding = crate::host::check::finding("", super::drift(&report));
            assert_eq!(finding.severity, severity);
            assert_eq!(finding.why.contains("7.4% off"), severity == Severity::Warning, "{finding:?}");
        }
    }

    #[test]
    fn a_step_of_the_counter_is_an_alarm_unless_the_machine_was_suspended() {
        let stepped = Drift { steps: vec![step(-3e9)], ..drift(COUNTER, 0.0) };
        assert_eq!(judged(vec![drift(SYSTEM, 0.0), stepped.clone()]).severity, Severity::Critical);
        let boottime = Drift { steps: vec![step(3e9)], ..drift("boottime", 0.0) };
        let finding = judged(vec![drift(SYSTEM, 0.0), stepped, boottime]);
        assert_eq!(finding.severity, Severity::Ok);
        assert!(finding.summary.contains("suspended for 3.0 s"), "{finding:?}");
    }

    #[test]
    fn a_suspend_shorter_than_a_second_explains_one_step() {
        let check_with = |steps: usize, suspends| {
            let counter = Drift { steps: vec![step(1.1e8); steps], ..drift(COUNTER, 0.0) };
            let activity = Fact::Known(Activity { suspends: Some(suspends), ..Activity::default() });
            let report = Report::empty(Origin::Measured, "");
            crate::host::check::finding(
                "",
                super::drift(&Report { drift: vec![drift(SYSTEM, 0.0), counter], activity, ..report }),
            )
        };
        assert_eq!(check_with(1, 0).severity, Severity::Critical);
        let one = check_with(1, 1);
        assert!(one.severity == Severity::Ok && one.summary.contains("less than a second"), "{one:?}");
        assert_eq!(check_with(2, 1).severity, Severity::Critical, "one suspend does not explain two steps");
    }

    #[test]
    fn a_change_of_the_counters_rate_is_a_warning() {
        let changed = Drift { bend_ppm: 50.0, ..drift(COUNTER, 25.0) };
        assert_eq!(judged(vec![drift(SYSTEM, 0.0), changed]).severity, Severity::Warning);
    }

    #[test]
    fn a_clock_without_a_time_service_is_a_warning_after_the_start() {
        let severity = |synchronized, uptime_s: f64| {
            let mut report = Report::empty(Origin::Measured, "");
            report.host.ntp = Fact::Known(Ntp { synchronized, frequency_ppm: 0.0 });
            report.host.uptime_seconds = Fact::Known(uptime_s);
            super::wall_clock(&report).map(|finding| finding.severity).unwrap_or(Severity::Unknown)
        };
        assert_eq!([10.0, 1e6].map(|up| severity(true, up)), [Severity::Ok; 2]);
        assert_eq!([10.0, 1e6].map(|up| severity(false, up)), [Severity::Unknown, Severity::Warning]);
        assert!(super::wall_clock(&Report::empty(Origin::Measured, "why")).is_err());
    }
}
