//! The sentences and cells of an explain report. The text screen and the HTML page both use them.

mod captured;
pub mod classic;
mod figures;
mod live;
mod nodes;

pub use figures::{digits, interval, ms, per_call, with_margin};
pub use live::{BASELINE, OVERHEAD, Parts, counting_name};
pub use nodes::{clock_share, corrected, rank, reported};

use crate::human::PLUS_MINUS;
use crate::report::ExplainReport;

/// The answer, and the facts below the plan.
#[derive(Default)]
pub struct ExplainText {
    pub answer: String,
    /// name and sentence
    pub facts: Vec<(&'static str, String)>,
}

pub const MARGINS: &str = "95% interval: in 95 of 100 cases, the true value is within it";
/// Nothing was run, so the error is that of test statements.
const CAPTURED_MARGINS: &str =
    "interval: for 92 of 100 test statements with less than 60% overhead, the true value was within it";
/// The given time is that of another run.
const GIVEN_MARGINS: &str = "interval, if the given time is off by at most 3%: on a busy machine, runs differ more";
const RANKS: &str =
    "by corrected self time; in parentheses: by reported self time, where the overhead changed the rank";

const UNKNOWN_RANKS: &str = "the plan does not show the self time: other nodes run a part of the same subplan, or the node's inputs \
    ran in parallel";

impl ExplainText {
    /// Returns the sentences for a report.
    pub fn of(report: &ExplainReport) -> ExplainText {
        let (answer, mut facts) = match (&report.runs, &report.capture) {
            (Some(runs), _) => (live::answer(report, runs), live::facts(report, runs)),
            (None, Some(capture)) => (captured::answer(report, capture), captured::facts(report, capture)),
            (None, None) => Default::default(),
        };
        let margins = match &report.capture {
            Some(capture) if capture.given_plain_ms.is_none() => CAPTURED_MARGINS,
            Some(_) => GIVEN_MARGINS,
            None => MARGINS,
        };
        if report.has_figures() {
            facts.insert(0, (PLUS_MINUS, margins.into()));
            if report.nodes.iter().any(|node| nodes::rank_change(node, report).is_some()) {
                facts.insert(1, ("rank", RANKS.into()));
            }
            if report.nodes.iter().any(|node| node.corrected_rank.is_none()) {
                facts.push(("rank ?", UNKNOWN_RANKS.into()));
            }
            if report.nodes.iter().any(|node| node.processes > 1) {
                facts.push(("note", "times of parallel nodes are per process".into()));
            }
        }
        facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
        ExplainText { answer, facts }
    }
}
