//! The pages of `explain`: the answer, where the time goes, the plan, and the facts.

use super::page::{Place, document, facts, first_sentence, page, part, signed};
use super::{plan, shares};
use crate::render::explain_text::ExplainText;
use crate::report::ExplainReport;
use maud::{Markup, html};

pub const TITLE: &str = "Overhead of EXPLAIN ANALYZE";

pub fn html(report: &ExplainReport) -> String {
    page(TITLE, section(report, Place::ALONE))
}

/// Returns the section of one statement or plan.
pub fn section(report: &ExplainReport, place: Place) -> Markup {
    let ExplainText { answer, facts: lines } = ExplainText::of(report);
    // The statement is above the plan in full.
    let lines = lines.into_iter().filter(|(name, _)| *name != "statement").collect::<Vec<_>>();
    let parts = html! {
        @if report.has_figures() {
            (shares::shares(report))
            @if !report.nodes.is_empty() { (part(place, "Plan", plan::tree(report))) }
        }
        @if !lines.is_empty() { (part(place, "How these figures were made, and their limits", facts(lines))) }
    };
    let (first, others) = first_sentence(&answer);
    let lines_below = html! {
        @if !others.is_empty() { p { (signed(others)) } }
        @if let Some(statement) = &report.statement { pre { (statement) } }
    };
    document(place, html! { (signed(first)) }, lines_below, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ExplainedNode, LiveRuns, Range};

    #[test]
    fn texts_of_a_plan_are_escaped() {
        let node = ExplainedNode { title: "Seq Scan on <b>\"t\"".into(), ..Default::default() };
        let report = ExplainReport { nodes: vec![node], statement: Some("SELECT 1 < 2".into()), ..Default::default() };
        let page = html(&report);
        assert!(page.contains("Seq Scan on &lt;b&gt;") && page.contains("<pre>SELECT 1 &lt; 2</pre>"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("<script"), "{page}");
    }

    #[test]
    fn without_figures_there_is_no_plan() {
        let nodes = vec![ExplainedNode { title: "Result".into(), ..Default::default() }];
        let report = ExplainReport { nodes, runs: Some(LiveRuns::default()), ..Default::default() };
        assert!(!html(&report).contains("class=\"plan\""));
        let overhead_factor = Some(Range::default());
        let report = ExplainReport { overhead_factor, ..report };
        assert!(html(&report).contains("class=\"plan\""));
    }
}
