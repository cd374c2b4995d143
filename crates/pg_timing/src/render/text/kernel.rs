//! The kernel log on the screen: a summary, or the kernel's own lines, each with its meaning.

use super::{BOLD, wrapped};
use crate::render::host_text::{READ_LOG, important, kernel_log, meaning};
use crate::report::{KernelMessage, Report};
use std::fmt::Write;

/// Maximum number of messages on the screen. JSON has all of them.
const MAX_MESSAGES: usize = 6;

const LABEL: &str = "kernel     ";
const BELOW: &str = "           ";

pub fn line(out: &mut String, report: &Report) {
    let Some(log) = kernel_log(report) else { return };
    let mut labels = std::iter::once(LABEL).chain(std::iter::repeat(BELOW));
    let mut label = || labels.next().unwrap_or(BELOW);
    if let Some(summary) = &log.summary {
        wrapped(out, label(), summary);
    }
    if let Some(why) = &log.unreadable {
        wrapped(out, label(), why);
        // Never wrap a command: users paste it.
        _ = writeln!(out, "{BELOW}    {BOLD}{READ_LOG}{BOLD:#}");
    }
    let shown = important(log.messages, MAX_MESSAGES);
    for (nth, message) in shown.iter().enumerate() {
        wrapped(out, label(), &format!("{}{}", time(message), message.text));
        // Neighbors with the same meaning share it.
        if shown.get(nth + 1).is_none_or(|next| next.meaning != message.meaning) {
            wrapped(out, &format!("{BELOW}  = "), &meaning(message));
        }
    }
}

/// Returns the time as the log prints it.
fn time(message: &KernelMessage) -> String {
    match (message.seconds, &message.stamp) {
        (Some(seconds), _) => format!("[{seconds:.6}] "),
        (None, Some(stamp)) => format!("{stamp} "),
        (None, None) => String::new(),
    }
}
