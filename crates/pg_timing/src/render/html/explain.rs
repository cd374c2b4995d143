//! The page of `explain`: the text of the screen, and a bar chart of self times.

use super::page;
use crate::render::explain_text::{ExplainText, clock_share, interval, ms, rank, reported, with_margin};
use crate::report::{ClassicReport, ExplainReport, ExplainedNode};
use maud::{Markup, html};

const TITLE: &str = "Overhead of EXPLAIN ANALYZE";

pub fn html(report: &ExplainReport) -> String {
    page(TITLE, section(report))
}

/// Renders several plans on one page.
pub fn several(reports: &[ExplainReport]) -> String {
    page(TITLE, html! { @for report in reports { (section(report)) } })
}

/// Renders both statements of the classic test.
pub fn classic(report: &ClassicReport) -> String {
    page(TITLE, html! { (section(&report.count)) (section(&report.nested)) })
}

fn section(report: &ExplainReport) -> Markup {
    let ExplainText { answer, facts } = ExplainText::of(report);
    html! {
        h1 { (answer) }
        @if let Some(statement) = &report.statement { pre { (statement) } }
        @if report.has_figures() { (tree(report)) }
        dl {
            @for (name, fact) in facts { dt { (name) } dd { (fact) } }
        }
    }
}

fn tree(report: &ExplainReport) -> Markup {
    let max_ms = report.nodes.iter().map(|node| node.reported_self_ms.max(node.corrected_self_ms)).fold(0.0, f64::max);
    html! {
        table {
            thead {
                tr {
                    th.node { "node" }
                    th { "reported" }
                    th { "corrected" }
                    th { "clock" }
                    th { "calls" }
                    th { "rank" }
                    th { "self time, corrected" }
                    th.node title="time without the nodes below" {
                        "self time: " span.reported { "reported" } ", " span.corrected { "corrected" }
                    }
                }
            }
            tbody { @for node in &report.nodes { (line(node, report, max_ms)) } }
        }
    }
}

fn line(node: &ExplainedNode, report: &ExplainReport, max_ms: f64) -> Markup {
    let width = |ms: f64| format!("width: {:.1}%", if max_ms > 0.0 { 100.0 * ms / max_ms } else { 0.0 });
    html! {
        tr {
            td.node style=(format!("padding-left: {:.1}em", 0.6 + 1.4 * node.depth() as f64)) {
                (node.title)
            }
            td { (reported(node)) " ms" }
            td { (ms(node.corrected_ms.estimate)) " " span.error { (interval(node.corrected_ms)) } }
            td { (clock_share(node)) }
            td { (crate::human::count(node.calls.round() as u64)) }
            td.rank { (rank(node, report)) }
            td { (with_margin(node.self_ms)) " ms" }
            td.bars title=(format!("{} reported, {} corrected", ms(node.reported_self_ms), ms(node.corrected_self_ms))) {
                div.bar.reported style=(width(node.reported_self_ms)) {}
                div.bar.corrected style=(width(node.corrected_self_ms)) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_plan_are_escaped() {
        let node = ExplainedNode { title: "Seq Scan on <b>\"t\"".into(), ..Default::default() };
        let report = ExplainReport { nodes: vec![node], statement: Some("SELECT 1 < 2".into()), ..Default::default() };
        let page = html(&report);
        assert!(page.contains("Seq Scan on &lt;b&gt;") && page.contains("<pre>SELECT 1 &lt; 2</pre>"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("<script"), "{page}");
    }
}
