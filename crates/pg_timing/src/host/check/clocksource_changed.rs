//! `clocksource-changed`: did the kernel's clock source change after boot?

use crate::report::{Demoted, Finding, LateSwitch, Report, Severity, finding_id};

/// The kernel switches within a second of its verdict.
const FOLLOWS_S: f64 = 10.0;

const ID: &str = finding_id::CLOCKSOURCE_CHANGED;

pub fn check(report: &Report) -> Finding {
    if let (Some(before), Some(now)) = (&report.clocksource.before, report.clocksource.current.known()) {
        return Finding::new(
            ID,
            Severity::Warning,
            format!("the clock source changed from {before} to {now} while the clocks were measured"),
        )
        .evidence(format!("current_clocksource: {before} at the start, {now} at the end"))
        .why("the figures above are a mixture of both clocks; measure again");
    }
    let Some(kernel) = report.kernel.known() else {
        return Finding::unknown(ID, "the kernel log is not to be had");
    };
    let now = report.clocksource.current.known();
    if let Some((now, last)) = now.and_then(|now| Some((now, kernel.other_last_clocksource(now)?))) {
        let summary = format!(
            "the kernel log ends on {last}, but this kernel runs on {now}: it is an old log, or another host's"
        );
        return Finding::unknown(ID, summary);
    }
    if kernel.switches.iter().any(|switch| switch.seconds.is_none()) {
        return Finding::unknown(ID, "the kernel log does not tell how long after boot its lines are");
    }
    let Some(LateSwitch { from, to, seconds }) = kernel.late_switch() else {
        return Finding::ok(
            ID,
            if kernel.since_boot {
                "the clock source is the one that the kernel chose at boot"
            } else {
                "the kernel log, as far as it reaches back, names no change of the clock source"
            },
        );
    };
    let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
    let summary = format!("the clock source changed{from} to {to} at {seconds:.0} s after boot");
    // Given up by the kernel, it is an alarm; changed by hand, it is what somebody wanted.
    let demotion = kernel.demotion.as_ref().filter(|d| d.seconds.is_some_and(|at| (at - seconds).abs() < FOLLOWS_S));
    let found = match (demotion, kernel.unstable) {
        (Some(Demoted { when: Some(when), .. }), _) => format!("TSC marked unstable {when}"),
        (Some(_), _) => "TSC marked unstable".into(),
        (None, true) => "a clock source was found to be bad".into(),
        (None, false) => {
            return Finding::ok(ID, summary + ", by hand").evidence("kernel log: no clock source was found to be bad");
        }
    };
    Finding::new(ID, Severity::Warning, summary)
        .evidence(format!("kernel log: {found}"))
        .why("plans and logs from before that time were timed by another clock: their times do not compare")
}
