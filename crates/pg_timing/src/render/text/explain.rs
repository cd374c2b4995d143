//! The screen of `explain`: the answer, then the plan as a tree.

mod captured;

use super::{BOLD, DIM, wrapped};
use crate::report::{ExplainReport, ExplainedNode, LiveRuns, Range, Timed};

pub fn text(report: &ExplainReport) -> String {
    let mut out = String::new();
    let (answer, facts) = match (&report.runs, &report.capture) {
        (Some(runs), _) => (answer(report, runs), facts(report, runs)),
        (None, Some(capture)) => (captured::answer(report, capture), captured::facts(report, capture)),
        (None, None) => Default::default(),
    };
    wrapped(&mut out, "", &answer);
    out.push('\n');
    out.push_str(&tree(report));
    out.push('\n');
    for (name, fact) in facts {
        wrapped(&mut out, &format!("{name:<11}"), &fact);
    }
    for note in &report.notes {
        wrapped(&mut out, "note       ", note);
    }
    out
}

/// `EXPLAIN ANALYZE says 585 ms; the query takes 219 ms (+-4).`
fn answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let off = (corrected.high - corrected.low) / 2.0;
    let first = format!(
        "EXPLAIN ANALYZE says {}; the query takes {} (+-{}).",
        ms(report.reported_ms),
        ms(corrected.estimate),
        digits(off)
    );
    if report.reported_ms <= corrected.high {
        return format!("{first} What it adds is less than can be told apart.");
    }
    let clock = clock_ms(report, runs) / (report.reported_ms - runs.plain_ms);
    let part = match clock {
        c if c > 0.9 => "nearly all of it the clock",
        c if c > 0.6 => "most of it the clock",
        c if c > 0.4 => "about half of it the clock",
        c if c > 0.1 => "some of it the clock",
        _ => "hardly any of it the clock",
    };
    format!("{first} {:.0}% of what it reports is its own overhead, {part}.", 100.0 * runs.overhead_share)
}

fn tree(report: &ExplainReport) -> String {
    let mut out = format!(
        "{BOLD}{:>11}  {:>11} {:>9}  {:>5}  {:>10}  node{BOLD:#}\n",
        "reported", "corrected", "+-", "clock", "calls"
    );
    for node in &report.nodes {
        let off = (node.corrected_ms.high - node.corrected_ms.low) / 2.0;
        let indent = "  ".repeat(node.depth);
        out.push_str(&format!(
            "{:>11}  {:>11} {:>9}  {:>4.0}%  {:>10}  {indent}{}{}\n",
            ms(node.reported_ms),
            ms(node.corrected_ms.estimate),
            digits(off),
            100.0 * node.clock_share,
            crate::human::count(node.calls.round() as u64),
            node.title,
            rank(node, report),
        ));
    }
    if report.nodes.iter().any(|node| node.processes > 1) {
        out.push_str(&format!("{DIM}times of nodes that several processes run are those of one of them{DIM:#}\n"));
    }
    out
}

/// Said of nodes that matter, before or after; a captured plan's are not known well enough.
fn rank(node: &ExplainedNode, report: &ExplainReport) -> String {
    const MATTERS: f64 = 0.05;
    let matters = node.reported_self_ms > MATTERS * report.reported_ms
        || node.corrected_self_ms > MATTERS * report.corrected_ms.estimate;
    match report.runs.is_some() && matters && node.rank != node.corrected_rank {
        true => {
            format!("  {BOLD}<- number {} by reported time, {} by corrected{BOLD:#}", node.rank, node.corrected_rank)
        }
        false => String::new(),
    }
}

pub(super) fn facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
    let mut facts = vec![("overhead", overhead(report, runs))];
    facts.extend(timed(&runs.timed).map(|fact| ("timed by", fact)));
    facts.push(("server", server(report, runs)));
    facts
}

/// A line for each setting that chooses how nodes are timed: what EXPLAIN ANALYZE says with it.
fn timed(timed: &[Timed]) -> impl Iterator<Item = String> {
    let way = |way: &Timed| format!("{} {} ({})", way.value, ms(way.reported_ms), per_call(way.clock_per_call_ns));
    timed
        .chunk_by(|a, b| a.setting == b.setting)
        .map(move |ways| format!("{}: {}", ways[0].setting, ways.iter().map(way).collect::<Vec<_>>().join(", ")))
}

/// `40 +-3 ns a call`
pub(super) fn per_call(ns: Range) -> String {
    format!("{} +-{} ns a call", digits(ns.estimate), digits((ns.high - ns.low) / 2.0))
}

/// What reading the clock added.
fn clock_ms(report: &ExplainReport, runs: &LiveRuns) -> f64 {
    (report.reported_ms - runs.rows_only_ms).max(0.0)
}

fn overhead(report: &ExplainReport, runs: &LiveRuns) -> String {
    let mut parts = vec![format!("clock {} ({})", ms(clock_ms(report, runs)), per_call(runs.clock_per_call_ns))];
    let bare = runs.without_buffers_ms.unwrap_or(runs.rows_only_ms);
    if runs.without_buffers_ms.is_some() {
        parts.push(format!("buffers {}", ms((runs.rows_only_ms - bare).max(0.0))));
    }
    parts.push(format!("counting rows {}", ms((bare - runs.plain_ms).max(0.0))));
    format!("{}; medians of {} runs each", parts.join(", "), runs.runs)
}

fn server(report: &ExplainReport, runs: &LiveRuns) -> String {
    format!("PostgreSQL {}, {}; {}", runs.server_version, runs.server, settings(report))
}

fn settings(report: &ExplainReport) -> String {
    let settings: Vec<String> = report.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    settings.join(", ")
}

pub(super) fn ms(ms: f64) -> String {
    format!("{} ms", digits(ms))
}

/// Three digits, as far as they are before the point.
pub(super) fn digits(ms: f64) -> String {
    match ms.abs() {
        m if m < 0.9995 => format!("{ms:.3}"),
        m if m < 9.995 => format!("{ms:.2}"),
        m if m < 99.95 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}
