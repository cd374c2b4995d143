//! The kernel line: what its log says, in short if that is nothing bad.

use super::wrapped;
use crate::human::uptime;
use crate::report::{Fact, KernelReport, Origin, Report};

/// More of the story than this does not fit on the screen; JSON has all of it.
const STORY: usize = 6;

const LABEL: &str = "kernel     ";
const BELOW: &str = "           ";

pub fn line(out: &mut String, report: &Report) {
    match &report.kernel {
        Fact::Known(kernel) if kernel.speaks_against() => {
            let skipped = kernel.story.len().saturating_sub(STORY);
            let label = |nth: usize| if nth == 0 { LABEL } else { BELOW };
            kernel.story.iter().skip(skipped).enumerate().for_each(|(nth, line)| wrapped(out, label(nth), line));
        }
        Fact::Known(kernel) => wrapped(out, LABEL, &content(report, kernel)),
        Fact::Unavailable { unavailable } if report.origin == Origin::Measured => wrapped(
            out,
            LABEL,
            &format!(
                "its log could not be read ({unavailable}); sudo dmesg | pg_timing check --kernel-log - brings it"
            ),
        ),
        Fact::Unavailable { .. } => {}
    }
}

fn content(report: &Report, kernel: &KernelReport) -> String {
    let now = report.clocksource.current.known();
    if now.is_some_and(|now| kernel.ends_elsewhere(now).is_some()) {
        return "its log ends on another clock source than this kernel runs on: an old log, or another host's".into();
    }
    if !kernel.since_boot {
        return "nothing against this clock in its log, which does not reach back to the boot".into();
    }
    let up = report.host.uptime_seconds.known();
    let since = up.map(|up| format!(", {} ago", uptime(*up))).unwrap_or_default();
    let switched = kernel.late_switch().map(|late| {
        let ago = up.map(|up| format!(", last {} ago", uptime((up - late.seconds).max(0.0))));
        format!("; clock source switched by hand{}", ago.unwrap_or_default())
    });
    format!("nothing against this clock since boot{since}{}", switched.unwrap_or_default())
}
