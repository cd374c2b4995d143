//! What the kernel log says: a summary, or all messages about clock problems.

use crate::human::uptime;
use crate::report::{Fact, KernelReport, Origin, Report};

/// What to show of a kernel log.
pub enum KernelLog<'a> {
    /// the messages about clocks, because they show a problem
    Story(&'a [String]),
    Summary(String),
    /// why this user cannot read it; [`READ_LOG`] can
    Unreadable(String),
}

/// Reads the kernel log of this host as root.
pub const READ_LOG: &str = "sudo dmesg | pg_timing check --kernel-log -";

/// Returns what to show of the kernel log. `None` if there is nothing to say.
pub fn kernel_problem_or_summary(report: &Report) -> Option<KernelLog<'_>> {
    match &report.kernel {
        Fact::Known(kernel) if kernel.has_problems() => Some(KernelLog::Story(&kernel.story)),
        Fact::Known(kernel) => Some(KernelLog::Summary(summary(report, kernel))),
        Fact::Unavailable { unavailable } if report.origin == Origin::Measured => {
            Some(KernelLog::Unreadable(format!("cannot read the kernel log ({unavailable}); type:")))
        }
        Fact::Unavailable { .. } => None,
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
