//! The line about the kernel log: a summary, or all messages about clock problems.

use super::wrapped;
use crate::human::uptime;
use crate::report::{Fact, KernelReport, Origin, Report};

/// Maximum number of messages on the screen. JSON has all of them.
const MAX_MESSAGES: usize = 6;

const LABEL: &str = "kernel     ";
const BELOW: &str = "           ";

pub fn line(out: &mut String, report: &Report) {
    match &report.kernel {
        Fact::Known(kernel) if kernel.has_problems() => {
            let skipped = kernel.story.len().saturating_sub(MAX_MESSAGES);
            let label = |nth: usize| if nth == 0 { LABEL } else { BELOW };
            kernel.story.iter().skip(skipped).enumerate().for_each(|(nth, line)| wrapped(out, label(nth), line));
        }
        Fact::Known(kernel) => wrapped(out, LABEL, &summary(report, kernel)),
        Fact::Unavailable { unavailable } if report.origin == Origin::Measured => wrapped(
            out,
            LABEL,
            &format!("cannot read the kernel log ({unavailable}); use: sudo dmesg | pg_timing check --kernel-log -"),
        ),
        Fact::Unavailable { .. } => {}
    }
}

fn summary(report: &Report, kernel: &KernelReport) -> String {
    let now = report.clocksource.current.known();
    if now.is_some_and(|now| kernel.other_last_clocksource(now).is_some()) {
        return "the kernel log ends with another clock source than the current one: it is old, or from another host"
            .into();
    }
    if !kernel.since_boot {
        return "no clock problems in the kernel log (incomplete: its beginning is missing)".into();
    }
    let up = report.host.uptime_seconds.known();
    let since = up.map(|up| format!(", {} ago", uptime(*up))).unwrap_or_default();
    let switched = kernel.late_switch().map(|late| {
        let ago = up.map(|up| format!(" {} ago", uptime((up - late.seconds).max(0.0))));
        format!("; the clock source was last switched manually{}", ago.unwrap_or_default())
    });
    format!("no clock problems in the kernel log since boot{since}{}", switched.unwrap_or_default())
}
