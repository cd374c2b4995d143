//! The sentences and cells of an explain report. The text screen and the HTML page both use them.

mod captured;
mod figures;
mod live;
mod nodes;

pub use figures::{digits, interval, ms, per_call, with_margin};
pub use live::{BASELINE, OVERHEAD};
pub use nodes::{clock_share, rank_change, reported};

use crate::report::ExplainReport;

/// The answer, and the facts below the plan.
#[derive(Default)]
pub struct ExplainText {
    pub answer: String,
    /// name and sentence
    pub facts: Vec<(&'static str, String)>,
}

impl ExplainText {
    /// Returns the sentences for a report.
    pub fn of(report: &ExplainReport) -> ExplainText {
        let (answer, mut facts) = match (&report.runs, &report.capture) {
            (Some(runs), _) => (live::answer(report, runs), live::facts(report, runs)),
            (None, Some(capture)) => (captured::answer(report, capture), captured::facts(report, capture)),
            (None, None) => Default::default(),
        };
        if report.nodes.iter().any(|node| node.processes > 1) {
            facts.push(("note", "times of parallel nodes are per process".into()));
        }
        facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
        ExplainText { answer, facts }
    }
}
