//! The line about the kernel log: a summary, or all messages about clock problems.

use super::{BOLD, wrapped};
use crate::render::host_text::{KernelLog, READ_LOG, kernel_problem_or_summary};
use crate::report::Report;
use std::fmt::Write;

/// Maximum number of messages on the screen. JSON has all of them.
const MAX_MESSAGES: usize = 6;

const LABEL: &str = "kernel     ";
const BELOW: &str = "           ";

pub fn line(out: &mut String, report: &Report) {
    match kernel_problem_or_summary(report) {
        Some(KernelLog::Story(story)) => {
            let skipped = story.len().saturating_sub(MAX_MESSAGES);
            let label = |nth: usize| if nth == 0 { LABEL } else { BELOW };
            story.iter().skip(skipped).enumerate().for_each(|(nth, line)| wrapped(out, label(nth), line));
        }
        Some(KernelLog::Summary(summary)) => wrapped(out, LABEL, &summary),
        Some(KernelLog::Unreadable(why)) => {
            wrapped(out, LABEL, &why);
            // Never wrap a command: users paste it.
            _ = writeln!(out, "{BELOW}    {BOLD}{READ_LOG}{BOLD:#}");
        }
        None => {}
    }
}
