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

/// And by more than their errors.
fn have_changed_places(a: &ExplainedNode, b: &ExplainedNode) -> bool {
    let off = |node: &ExplainedNode| (node.corrected_ms.high - node.corrected_ms.low) / 2.0;
    (a.rank < b.rank) != (a.corrected_rank < b.corrected_rank)
        && (a.corrected_self_ms - b.corrected_self_ms).abs() > off(a).hypot(off(b))
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
    use crate::report::Range;

    fn node(rank: usize, corrected_rank: usize, corrected_self_ms: f64, off: f64) -> ExplainedNode {
        let corrected_ms =
            Range { low: corrected_self_ms - off, estimate: corrected_self_ms, high: corrected_self_ms + off };
        ExplainedNode {
            rank,
            corrected_rank,
            reported_self_ms: 100.0,
            corrected_self_ms,
            corrected_ms,
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
        }
    }
}
