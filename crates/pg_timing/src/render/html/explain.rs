//! The page of `explain`: what the screen says, and where the time goes as bars.

use super::page;
use crate::render::words::explain::{Words, clock_share, ranks, reported};
use crate::render::words::{digits, ms};
use crate::report::{ClassicReport, ExplainReport, ExplainedNode};
use maud::{Markup, html};

const TITLE: &str = "How much of EXPLAIN ANALYZE is the clock";

pub fn html(report: &ExplainReport) -> String {
    page(TITLE, section(report))
}

/// Of the classic test: one statement after the other.
pub fn classic(report: &ClassicReport) -> String {
    page(TITLE, html! { (section(&report.count)) (section(&report.nested)) })
}

fn section(report: &ExplainReport) -> Markup {
    let Words { answer, facts } = Words::of(report);
    html! {
        h1 { (answer) }
        @if let Some(statement) = &report.statement { pre { (statement) } }
        (tree(report))
        dl {
            @for (name, fact) in facts { dt { (name) } dd { (fact) } }
        }
    }
}

fn tree(report: &ExplainReport) -> Markup {
    let most = report.nodes.iter().map(|node| node.reported_self_ms.max(node.corrected_self_ms)).fold(0.0, f64::max);
    html! {
        table {
            thead {
                tr {
                    th.node { "node" }
                    th { "reported" }
                    th { "corrected" }
                    th { "clock" }
                    th { "calls" }
                    th.node title="without the nodes below" {
                        "by itself: " span.reported { "reported" } ", " span.corrected { "corrected" }
                    }
                }
            }
            tbody { @for node in &report.nodes { (line(node, report, most)) } }
        }
    }
}

fn line(node: &ExplainedNode, report: &ExplainReport, most: f64) -> Markup {
    let width = |ms: f64| format!("width: {:.1}%", if most > 0.0 { 100.0 * ms / most } else { 0.0 });
    html! {
        tr {
            td.node style=(format!("padding-left: {:.1}em", 0.6 + 1.4 * node.depth as f64)) {
                (node.title)
                @if let Some((reported, corrected)) = ranks(node, report) {
                    " " span.rank { "number " (reported) " by reported time, " (corrected) " by corrected" }
                }
            }
            td { (reported(node)) }
            td { (ms(node.corrected_ms.estimate)) " " span.error { "+-" (digits(node.corrected_ms.off())) } }
            td { (clock_share(node)) }
            td { (crate::human::count(node.calls.round() as u64)) }
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
    fn what_a_plan_says_is_text() {
        let node = ExplainedNode { title: "Seq Scan on <b>\"t\"".into(), ..Default::default() };
        let report = ExplainReport { nodes: vec![node], statement: Some("SELECT 1 < 2".into()), ..Default::default() };
        let page = html(&report);
        assert!(page.contains("Seq Scan on &lt;b&gt;") && page.contains("<pre>SELECT 1 &lt; 2</pre>"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("<script"), "{page}");
    }
}
