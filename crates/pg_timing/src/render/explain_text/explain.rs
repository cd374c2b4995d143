//! The words for a statement's report.

use super::{captured, digits, ms, per_call};
use crate::report::{ExplainReport, ExplainedNode, LiveRuns, Timed};

#[derive(Default)]
pub struct Words {
    pub answer: String,
    /// a name, and what there is to say
    pub facts: Vec<(&'static str, String)>,
}

impl Words {
    pub fn of(report: &ExplainReport) -> Words {
        let mut words = match (&report.runs, &report.capture) {
            (Some(runs), _) => Words { answer: answer(report, runs), facts: facts(report, runs) },
            (None, Some(capture)) => {
                Words { answer: captured::answer(report, capture), facts: captured::facts(report, capture) }
            }
            (None, None) => Words::default(),
        };
        if report.nodes.iter().any(|node| node.processes > 1) {
            words.facts.push(("note", "times of nodes that several processes run are those of one of them".into()));
        }
        words.facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
        words
    }
}

/// `EXPLAIN ANALYZE says 585 ms; the query takes 219 ms (+-4).`
fn answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let first = format!(
        "EXPLAIN ANALYZE says {}; the query takes {} (+-{}).",
        ms(report.reported_ms),
        ms(corrected.estimate),
        digits(corrected.off())
    );
    if report.reported_ms <= corrected.high {
        return format!("{first} What it adds is less than can be told apart.");
    }
    let clock = clock_ms(report) / (report.reported_ms - runs.plain_ms);
    let part = match clock {
        c if c > 0.9 => "nearly all of it the clock",
        c if c > 0.6 => "most of it the clock",
        c if c > 0.4 => "about half of it the clock",
        c if c > 0.1 => "some of it the clock",
        _ => "hardly any of it the clock",
    };
    format!("{first} {:.0}% of what it reports is its own overhead, {part}.", 100.0 * runs.overhead_share)
}

/// Of nodes that matter, before or after, and have changed places for sure: both. A captured plan's are
/// not known well enough.
pub fn ranks(node: &ExplainedNode, report: &ExplainReport) -> Option<(usize, usize)> {
    const MATTERS: f64 = 0.05;
    let matters = node.reported_self_ms > MATTERS * report.reported_ms
        || node.corrected_self_ms > MATTERS * report.corrected_ms.estimate;
    let changed = || report.nodes.iter().any(|other| have_changed_places(node, other));
    (report.runs.is_some() && matters && changed()).then_some((node.rank, node.corrected_rank))
}

/// Both before and after, and by more than their errors, which are of one whole: what one takes less, others take more.
fn have_changed_places(a: &ExplainedNode, b: &ExplainedNode) -> bool {
    let apart = |ms: fn(&ExplainedNode) -> f64, off: fn(&ExplainedNode) -> f64| (ms(a) - ms(b)).abs() > off(a) + off(b);
    (a.rank < b.rank) != (a.corrected_rank < b.corrected_rank)
        && apart(|node| node.reported_self_ms, |node| node.reported_self_off_ms)
        && apart(|node| node.corrected_self_ms, |node| node.corrected_self_off_ms)
}

/// What EXPLAIN ANALYZE says of a node: many loops of nearly nothing are printed as any number of ms.
pub fn reported(node: &ExplainedNode) -> String {
    match is_rounded(node) {
        true => format!("<{}", ms(node.reported_ms + node.rounded_ms)),
        false => ms(node.reported_ms),
    }
}

/// Of what it says.
pub fn clock_share(node: &ExplainedNode) -> String {
    if is_rounded(node) { "?".into() } else { format!("{:.0}%", 100.0 * node.clock_share) }
}

fn is_rounded(node: &ExplainedNode) -> bool {
    node.rounded_ms > node.reported_ms / 4.0
}

pub fn facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
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

/// What reading the clock added.
fn clock_ms(report: &ExplainReport) -> f64 {
    report.clock_share * report.reported_ms
}

fn overhead(report: &ExplainReport, runs: &LiveRuns) -> String {
    let mut parts = vec![format!("clock {} ({})", ms(clock_ms(report)), per_call(runs.clock_per_call_ns))];
    let bare = runs.without_buffers_ms.unwrap_or(runs.rows_only_ms);
    if runs.without_buffers_ms.is_some() {
        parts.push(format!("buffers {}", ms((runs.rows_only_ms - bare).max(0.0))));
    }
    parts.push(format!("counting rows {}", ms((bare - runs.plain_ms).max(0.0))));
    format!("{}; medians of {} runs each, and {} plain", parts.join(", "), runs.runs, runs.plain_runs)
}

fn server(report: &ExplainReport, runs: &LiveRuns) -> String {
    format!("PostgreSQL {}, {}; {}", runs.server_version, runs.server, settings(report))
}

pub fn settings(report: &ExplainReport) -> String {
    let settings: Vec<String> = report.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    settings.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(rank: usize, corrected_rank: usize, corrected_self_ms: f64, off: f64) -> ExplainedNode {
        ExplainedNode {
            rank,
            corrected_rank,
            reported_self_ms: 100.0 / rank as f64,
            corrected_self_ms,
            corrected_self_off_ms: off,
            ..Default::default()
        }
    }

    #[test]
    fn places_that_errors_may_have_changed_are_not_told() {
        for (off, told) in [(1.0, Some((1, 2))), (10.0, None)] {
            let nodes = vec![node(1, 2, 50.0, off), node(2, 1, 55.0, off)];
            let runs = Some(LiveRuns::default());
            let report = ExplainReport { nodes, runs, reported_ms: 200.0, ..Default::default() };
            assert_eq!(ranks(&report.nodes[0], &report), told);
            let mut alike = report;
            alike.nodes.iter_mut().for_each(|node| node.reported_self_off_ms = 60.0);
            assert_eq!(ranks(&alike.nodes[0], &alike), None);
        }
    }

    #[test]
    fn what_rounding_hides_is_not_told() {
        let said = |reported_ms: f64, rounded_ms: f64| {
            let node = ExplainedNode { reported_ms, rounded_ms, clock_share: 0.5, ..Default::default() };
            (reported(&node), clock_share(&node))
        };
        assert_eq!(said(0.0, 500.0), ("<500 ms".into(), "?".into()));
        assert_eq!(said(1000.0, 500.0).1, "?");
        assert_eq!(said(3000.0, 500.0), ("3000 ms".into(), "50%".into()));
    }
}
