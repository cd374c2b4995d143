//! A plan in text format with corrected times. All else is as printed.

use super::summary;
use super::times::{Correction, Times, corrected_times, rounded};
use crate::escape;
use crate::plan_format::keys::CORRECTION;
use crate::plan_format::{LineTimes, TextLine};
use crate::report::ExplainReport;

/// Returns the lines with corrected times, and one more line that says so.
pub fn corrected(plan: &[TextLine], report: &ExplainReport) -> String {
    let mut out = String::new();
    let corrected = corrected_times(report);
    let mut correction = None;
    for TextLine { text, times } in plan {
        let line = match times {
            LineTimes::None => None,
            LineTimes::Execution => text
                .split_once(": ")
                .map(|(name, _)| format!("{name}: {:.3} ms", rounded(report.corrected_ms.estimate))),
            LineTimes::Node(node) => {
                let printed = node_times(text);
                correction = printed
                    .as_ref()
                    .zip(corrected.get(*node))
                    .map(|((_, times, _), node)| Correction::of(*node, times.total));
                replaced(printed, |times| Some(correction?.node(times)))
            }
            LineTimes::Worker => replaced(worker_times(text), |times| Some(correction?.worker(times))),
        };
        out += &escape::line(line.as_deref().unwrap_or(text));
        out.push('\n');
    }
    out + &format!("{CORRECTION}: {}\n", escape::line(&summary(report)))
}

/// A line split at its times: the text before, the times, and the text after them.
type Split<'a> = (&'a str, Times, &'a str);

fn replaced(split: Option<Split>, correct: impl Fn(Times) -> Option<Times>) -> Option<String> {
    let (before, printed, after) = split?;
    let Times { startup, total } = correct(printed)?;
    Some(format!("{before}{:.3}..{:.3}{after}", rounded(startup), rounded(total)))
}

/// A condition cannot follow a node's times, but a name before them can contain any text.
fn node_times(line: &str) -> Option<Split<'_>> {
    split_at_times(line, line.rfind("(actual time=")?)
}

fn worker_times(line: &str) -> Option<Split<'_>> {
    split_at_times(line, line.find("actual time=")?)
}

fn split_at_times(line: &str, actual: usize) -> Option<Split<'_>> {
    let start = actual + line[actual..].find('=')? + 1;
    let length = line[start..].find(' ')?;
    let (startup, total) = line[start..start + length].split_once("..")?;
    let times = Times { startup: startup.parse().ok()?, total: total.parse().ok()? };
    Some((&line[..start], times, &line[start + length..]))
}
