//! The words for a captured plan.

use super::explain::settings;
use super::ms;
use crate::human::{count, duration};
use crate::report::{Capture, ExplainReport, Range};
use crate::statistics::ANOTHER_TIME;

/// `EXPLAIN ANALYZE said 7645 ms; without being timed it takes 2541 ms at most.`
pub fn answer(report: &ExplainReport, capture: &Capture) -> String {
    let corrected = report.corrected_ms;
    let said = format!("{} said {}", who(report), ms(report.reported_ms));
    let Some(plain) = capture.given_plain_ms else {
        let (low, high) = (ms(corrected.low), ms(corrected.high));
        let took = match low == high {
            true => high,
            false if corrected.low > 0.0 => format!("{low} to {high}"),
            false => format!("{high} at most"),
        };
        return format!("{said}; without being timed it takes {took}. {}", clock(capture.clock_share));
    };
    if report.reported_ms <= corrected.high {
        return format!(
            "{said}, and without it the statement takes {}: what it adds is less than can be told apart.",
            ms(plain)
        );
    }
    let added = 100.0 * (1.0 - plain / report.reported_ms);
    format!(
        "{said}; without it the statement takes {}, so {added:.0}% is its own overhead. {}",
        ms(plain),
        clock(capture.clock_share)
    )
}

/// auto_explain tells the statement, EXPLAIN does not.
fn who(report: &ExplainReport) -> &'static str {
    if report.statement.is_some() { "auto_explain" } else { "EXPLAIN ANALYZE" }
}

fn clock(share: Range) -> String {
    let (low, high) = (format!("{:.0}", 100.0 * share.low), format!("{:.0}", 100.0 * share.high));
    match low == high {
        true => format!("The clock is {low}% of what it said."),
        false => format!("The clock is {low} to {high}% of what it said."),
    }
}

pub fn facts(report: &ExplainReport, capture: &Capture) -> Vec<(&'static str, String)> {
    let mut facts = vec![("calls", calls(capture))];
    let expected = capture.expected_call_ns;
    if let (Some(read), Some(expected)) = (capture.read_ns, expected) {
        facts.push((
            "expected",
            format!(
                "{} to {} per call, at {} a read of the server's clock, counting rows included",
                duration(expected.low),
                duration(expected.high),
                duration(read)
            ),
        ));
    }
    if let Some(implied) = capture.implied_call_ns {
        facts.push((
            "implied",
            format!(
                "{} per call: what EXPLAIN ANALYZE added, over its calls{}",
                duration(implied),
                compared(implied, capture)
            ),
        ));
    }
    let why = match capture.runs_differ > ANOTHER_TIME {
        true => ": the cost of a read moved by so much in the host's report, or interruptions took it",
        false => ", as on a quiet machine",
    };
    facts.push(("runs", format!("{:.0}% allowed for what they differ by{why}", 100.0 * capture.runs_differ)));
    if !report.settings.is_empty() {
        facts.push(("settings", settings(report)));
    }
    if let Some(statement) = &report.statement {
        facts.push(("statement", shortened(statement)));
    }
    facts
}

fn calls(capture: &Capture) -> String {
    let calls = capture.calls;
    let [low, estimate, high] = [calls.low, calls.estimate, calls.high].map(|calls| count(calls.round() as u64));
    match low == high {
        true => format!("{estimate} of all nodes"),
        false => format!("{estimate} of all nodes; {low} to {high}, which the plan does not tell apart"),
    }
}

/// What is implied, beside what a read leads to expect.
fn compared(implied: f64, capture: &Capture) -> String {
    let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) else { return String::new() };
    let reads = format!("; that is {:.1} reads", implied / read);
    reads
        + match implied {
            ns if ns > expected.high => ": more than the clock explains",
            ns if ns < expected.low => ": less than that clock can take",
            _ => ", as expected",
        }
}

/// A statement on a line or so.
fn shortened(statement: &str) -> String {
    const MOST: usize = 150;
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} ...", &line[..at]),
        None => line,
    }
}
