//! Sentences about a captured plan.

use super::figures::settings;
use super::ms;
use crate::human::{count, duration, percent};
use crate::report::{Capture, ExplainReport, LogPlace};

/// A wider relative error is of little use.
const TOO_WIDE: f64 = 0.5;

/// Returns the headline: `EXPLAIN ANALYZE reported 7645 ms; without EXPLAIN this run would have taken about 160 ms (120
/// to 220 ms).`
pub fn answer(report: &ExplainReport, capture: &Capture) -> String {
    let corrected = report.corrected_ms;
    // Only auto_explain prints the statement.
    let source = if report.statement.is_some() { "auto_explain" } else { "EXPLAIN ANALYZE" };
    let reported = format!("{source} reported {}", ms(report.reported_ms));
    if capture.given_plain_ms.is_none() {
        let [low, estimate, high] = [corrected.low, corrected.estimate, corrected.high].map(ms);
        let time = match low == high {
            true => high,
            false if corrected.low > 0.0 => format!("about {estimate} ({low} to {high})"),
            false => format!("at most {high}"),
        };
        let clock = clock(report, capture);
        return format!("{reported}; without EXPLAIN this run would have taken {time}. {clock}");
    }
    let is_range = capture.plain_may_include_planning || capture.inputs_contradict;
    let time = match is_range {
        true => format!("{} to {}", ms(corrected.low), ms(corrected.high)),
        false => ms(corrected.estimate),
    };
    let takes = format!("{reported}; without EXPLAIN the statement takes {time}");
    if report.reported_ms <= corrected.high && !capture.inputs_contradict {
        return format!("{takes}. The overhead is below measurement noise.");
    }
    let overhead = |ms: f64| 100.0 * (1.0 - ms / report.reported_ms).max(0.0);
    let share = match is_range {
        true => format!("{:.0}% to {:.0}%", overhead(corrected.high), overhead(corrected.low)),
        false => format!("{:.0}%", overhead(corrected.estimate)),
    };
    let is = if report.unexplained_share > 0.0 { "overhead or unexplained" } else { "overhead" };
    format!("{takes}: {share} of the reported time is {is}. {}", clock(report, capture))
}

/// Returns the clock's share as the table shows it, with its bounds, and the unexplained share.
fn clock(report: &ExplainReport, capture: &Capture) -> String {
    let [low, share, high] = [capture.clock_share.low, report.clock_share, capture.clock_share.high]
        .map(|share| format!("{:.0}%", 100.0 * share));
    let bounds = if low == high { String::new() } else { format!(" ({low} to {high})") };
    let unexplained = match report.unexplained_share > 0.0 {
        true => format!(", and {} is unexplained", percent(report.unexplained_share)),
        false => String::new(),
    };
    format!("Clock reads are {share} of the reported time{bounds}{unexplained}.")
}

/// Returns the facts below the plan.
pub fn facts(report: &ExplainReport, capture: &Capture) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(LogPlace { file, line }) = &capture.place {
        let nested = if capture.is_nested { "; nested: its time is also in its caller's time" } else { "" };
        facts.push(("plan", format!("number {} of {}: {file} line {line}{nested}", capture.taken, capture.plans)));
    }
    facts.push(("calls", total_calls(capture)));
    if let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) {
        let call = match capture.timed_call_ns {
            Some(ns) => format!(", and {} per timed call (two reads, and the work that they delay)", duration(ns)),
            None => String::new(),
        };
        facts.push((
            "expected",
            format!(
                "{} to {} per call, with {} per clock read{call}; includes row counting, and buffer counting if BUFFERS was on",
                duration(expected.low),
                duration(expected.high),
                duration(read)
            ),
        ));
    }
    if let Some(implied) = capture.implied_call_ns {
        let overhead = format!("{} per call (overhead divided by the calls of a process)", duration(implied));
        facts.push(("measured", overhead + &comparison(implied, report, capture)));
    }
    if report.unexplained_share > 0.0 {
        let unexplained = format!(
            "{} of the reported time: the calls cannot cost that much. The plan's run may have been slower, for example with \
             cold caches",
            percent(report.unexplained_share)
        );
        facts.push(("unexplained", unexplained));
    } else if capture.read_ns.is_none() {
        let unknown = "not determined without --read-cost or --host-report; the time of clock reads may include it";
        facts.push(("unexplained", unknown.into()));
    }
    if let Some(plain) = capture.given_plain_ms.filter(|_| capture.plain_may_include_planning) {
        let planning = format!("the given {} may include planning, which is not in the reported time", ms(plain));
        facts.push(("planning", planning));
    }
    if let Some(variation) = capture.assumed_variation() {
        let percent = 100.0 * variation;
        facts.push(("variation", format!("assumed from run to run: {percent:.0}%, as on a quiet machine")));
    } else if report.corrected_ms.half_width() > TOO_WIDE * report.corrected_ms.estimate {
        // The slowest plans of a log have no common time.
        let nth = capture.place.as_ref().map_or(String::new(), |_| format!("--nth {} ", capture.taken));
        let advice = format!("for a narrower range, time the statement without EXPLAIN and give {nth}--plain-ms MS");
        facts.push(("precision", advice));
    }
    if !report.settings.is_empty() {
        facts.push(("settings", settings(report, |_| true)));
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
fn comparison(implied: f64, report: &ExplainReport, capture: &Capture) -> String {
    let (Some(read), Some(expected)) = (capture.read_ns, capture.expected_call_ns) else { return String::new() };
    let reads = format!("; {:.1} clock reads", implied / read);
    reads
        + match implied {
            _ if capture.inputs_contradict => ", which contradicts the expected cost: the interval covers both",
            _ if report.unexplained_share > 0.0 => ", more than a call can cost: see unexplained",
            ns if ns < expected.low => ", less than expected",
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
