//! `clocksource-changed`: did the kernel's clock source change after boot?

use crate::report::{Finding, Report, Severity};

/// By then a kernel has chosen: the TSC's own refinement takes a second, drivers some more.
const BOOTED_S: f64 = 60.0;

/// The kernel switches within a second of its verdict.
const FOLLOWS_S: f64 = 10.0;

const ID: &str = "clocksource-changed";

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
    if let (Some(last), Some(now)) = (kernel.switches.last(), report.clocksource.current.known())
        && last.to != *now
    {
        let summary = format!(
            "the kernel log ends on {}, but this kernel runs on {now}: it is an old log, or another host's",
            last.to
        );
        return Finding::unknown(ID, summary);
    }
    if kernel.switches.iter().any(|switch| switch.seconds.is_none()) {
        return Finding::unknown(ID, "the kernel log does not tell how long after boot its lines are");
    }
    let late = |at: Option<f64>| at.is_some_and(|s| s > BOOTED_S);
    let Some(nth) = kernel.switches.iter().rposition(|switch| late(switch.seconds)) else {
        return Finding::ok(
            ID,
            if kernel.since_boot {
                "the clock source is the one that the kernel chose at boot"
            } else {
                "the kernel log, as far as it reaches back, names no change of the clock source"
            },
        );
    };
    let (switch, before) = (&kernel.switches[nth], nth.checked_sub(1).map(|before| &kernel.switches[before]));
    let from = before.map(|before| format!(" from {}", before.to)).unwrap_or_default();
    let seconds = switch.seconds.unwrap_or_default();
    let summary = format!("the clock source changed{from} to {} at {seconds:.0} s after boot", switch.to);
    // Given up by the kernel, it is an alarm; changed by hand, it is what somebody wanted.
    let demotion = kernel.demotion.as_ref().filter(|d| d.seconds.is_some_and(|at| (at - seconds).abs() < FOLLOWS_S));
    match (demotion, kernel.unstable) {
        (Some(demotion), _) => Finding::new(ID, Severity::Warning, summary)
            .evidence(format!(
                "kernel log: TSC marked unstable{}",
                demotion.when.as_ref().map(|w| format!(" {w}")).unwrap_or_default()
            ))
            .why("plans and logs from before that time were timed by another clock: their times do not compare"),
        (None, true) => Finding::new(ID, Severity::Warning, summary)
            .evidence("kernel log: a clock source was found to be bad")
            .why("plans and logs from before that time were timed by another clock: their times do not compare"),
        (None, false) => {
            Finding::ok(ID, summary + ", by hand").evidence("kernel log: no clock source was found to be bad")
        }
    }
}
