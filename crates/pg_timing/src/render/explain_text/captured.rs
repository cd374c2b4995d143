//! Sentences about a captured plan.

use super::figures::settings;
use super::ms;
use crate::human::{count, duration};
use crate::report::{Capture, ExplainReport, Range};
use crate::statistics::RUN_TO_RUN_VARIATION;

/// Returns the headline: `EXPLAIN ANALYZE reported 7645 ms; without EXPLAIN the statement takes at most 2541 ms.`
pub fn answer(report: &ExplainReport, capture: &Capture) -> String {
    let corrected = report.corrected_ms;
    // Only auto_explain prints the statement.
    let source = if report.statement.is_some() { "auto_explain" } else { "EXPLAIN ANALYZE" };
    let reported = format!("{source} reported {}", ms(report.reported_ms));
    let Some(plain) = capture.given_plain_ms else {
        let (low, high) = (ms(corrected.low), ms(corrected.high));
        let time = match low == high {
            true => high,
            false if corrected.low > 0.0 => format!("{low} to {high}"),
            false => format!("at most {high}"),
        };
        return format!("{reported}; without EXPLAIN the statement takes {time}. {}", clock(capture.clock_share));
    };
    if report.reported_ms <= corrected.high {
        return format!(
            "{reported}; without EXPLAIN the statement takes {}. The overhead is below measurement noise.",
            ms(plain)
        );
    }
    let overhead = 100.0 * (1.0 - plain / report.reported_ms);
    format!(
        "{reported}; without EXPLAIN the statement takes {}: {overhead:.0}% is overhead. {}",
        ms(plain),
        clock(capture.clock_share)
    )
}

fn clock(share: Range) -> String {
    let (low, high) = (format!("{:.0}", 100.0 * share.low), format!("{:.0}", 100.0 * share.high));
    match low == high {
        true => format!("Clock reads are {low}% of the reported time."),
        false => format!("Clock reads are {low}% to {high}% of the reported time."),
    }
}

/// Returns the facts below the plan.
pub fn facts(report: &ExplainReport, capture: &Capture) -> Vec<(&'static str, String)> {
    let mut facts = vec![("calls", total_calls(capture))];
    if let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) {
        facts.push((
            "expected",
            format!(
                "{} to {} per call, with {} per clock read; includes row counting, and buffer counting if BUFFERS was on",
                duration(expected.low),
                duration(expected.high),
                duration(read)
            ),
        ));
    }
    if let Some(implied) = capture.implied_call_ns {
        let overhead = format!("{} per call (overhead divided by calls)", duration(implied));
        facts.push(("measured", overhead + &comparison(implied, capture)));
    }
    let why = match capture.runs_differ > RUN_TO_RUN_VARIATION {
        true => "from the host report: variation of the read cost, or interruptions",
        false => "the default, measured on a quiet machine",
    };
    facts.push(("variation", format!("assumed from run to run: {:.0}% ({why})", 100.0 * capture.runs_differ)));
    if !report.settings.is_empty() {
        facts.push(("settings", settings(report)));
    }
    if let Some(statement) = &report.statement {
        facts.push(("statement", shortened(statement)));
    }
    facts
}

fn total_calls(capture: &Capture) -> String {
    let calls = capture.calls;
    let [low, high] = [calls.low, calls.high].map(|calls| count(calls.round() as u64));
    match low == high {
        true => format!("{high} in total"),
        false => format!("{low} to {high} in total (the plan does not show the exact number)"),
    }
}

/// Compares the implied with the expected overhead per call.
fn comparison(implied: f64, capture: &Capture) -> String {
    let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) else { return String::new() };
    let reads = format!("; {:.1} clock reads", implied / read);
    reads
        + match implied {
            ns if ns > expected.high => ", more than the clock explains",
            ns if ns < expected.low => ", less than this clock can cost",
            _ => ", as expected",
        }
}

/// Returns about one line of a statement.
fn shortened(statement: &str) -> String {
    const MAX_CHARS: usize = 150;
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}
