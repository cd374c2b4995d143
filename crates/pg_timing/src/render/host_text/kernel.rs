//! What the kernel log says: its messages about clocks if one of them matters, or a summary.

use crate::human::uptime;
use crate::report::{Fact, KernelMessage, KernelReport, MessageLevel, Origin, Report};

/// What to show of a kernel log.
pub struct KernelLog<'a> {
    /// a sentence before the messages
    pub summary: Option<String>,
    /// the messages, if one of them matters
    pub messages: &'a [KernelMessage],
    /// why this user cannot read it; [`READ_LOG`] can
    pub unreadable: Option<String>,
}

/// Reads the kernel log of this host as root.
pub const READ_LOG: &str = "sudo dmesg | pg_timing check --kernel-log -";

/// Returns what to show of the kernel log. `None` if there is nothing to say.
pub fn kernel_log(report: &Report) -> Option<KernelLog<'_>> {
    let nothing = KernelLog { summary: None, messages: &[], unreadable: None };
    match &report.kernel {
        Fact::Known(kernel) => {
            let messages: &[KernelMessage] = if kernel.has_notes() { &kernel.messages } else { &[] };
            let other = kernel.other_host.as_ref().map(|why| {
                format!("this log is from another host: {why}. It is judged alone, and nothing was measured")
            });
            let summary = other.or_else(|| messages.is_empty().then(|| summary(report, kernel)));
            Some(KernelLog { summary, messages, ..nothing })
        }
        Fact::Unavailable { unavailable } if report.origin == Origin::Measured => Some(KernelLog {
            unreadable: Some(format!("cannot read the kernel log ({unavailable}); type:")),
            ..nothing
        }),
        Fact::Unavailable { .. } => None,
    }
}

fn summary(report: &Report, kernel: &KernelReport) -> String {
    let now = report.clocksource.current.known();
    if kernel.recognized_lines == 0 {
        return "no recognized line about clocks in the kernel log".into();
    }
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

/// Returns what a message means, and how often it came.
pub fn meaning(message: &KernelMessage) -> String {
    let repeated = match (message.times, message.last_seconds) {
        (..=1, _) => String::new(),
        (times, Some(last)) => format!(" ({times} such messages, the last {last:.0} s after boot)"),
        (times, None) => format!(" ({times} such messages)"),
    };
    format!("{}{repeated}", message.meaning)
}

/// Returns the messages that a screen of few lines shows: faults and notes, and the clock sources after them.
pub fn important(messages: &[KernelMessage], most: usize) -> Vec<&KernelMessage> {
    let first = messages.iter().position(|message| message.level >= MessageLevel::Note).unwrap_or(0);
    let mut shown: Vec<&KernelMessage> = messages[first..].iter().collect();
    // The level decides first, and then the order.
    while shown.len() > most {
        let lowest = shown.iter().map(|message| message.level).min();
        let Some(at) = shown.iter().rposition(|message| Some(message.level) == lowest) else { break };
        shown.remove(at);
    }
    shown
}
