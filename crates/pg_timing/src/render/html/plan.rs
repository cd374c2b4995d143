//! A plan as a tree: each node with its figures, and bars of its reported and corrected self time.

use super::page::{extent, fraction, scrolling, signed};
use crate::render::explain_text::{clock_share, interval, ms, rank, reported, with_margin};
use crate::report::{ExplainReport, ExplainedNode};
use maud::{Markup, html};

/// Deeper nodes get no further indentation. Their titles would have no room.
const DEEPEST: usize = 12;

pub fn tree(report: &ExplainReport) -> Markup {
    let times = report.nodes.iter().flat_map(|node| [node.reported_self_ms, node.corrected_self_ms]);
    let longest_ms = times.fold(0.0, f64::max);
    let table = html! {
        table.plan {
            thead {
                tr {
                    th scope="col" rowspan="2" { "node" }
                    th.wide scope="colgroup" colspan="3" { "self time (without the nodes below)" }
                    th.number scope="colgroup" colspan="3" { "with the nodes below" }
                    th.number scope="col" rowspan="2" { "calls" }
                }
                tr {
                    th.wide scope="col" { span.key.reported {} "reported, " span.key {} "corrected" }
                    th.number scope="col" { "corrected" }
                    th.number scope="col" { "rank" }
                    th.number scope="col" { "reported" }
                    th.number scope="col" { "corrected" }
                    th.number scope="col" { "clock" }
                }
            }
            tbody { @for node in &report.nodes { (line(node, report, longest_ms)) } }
        }
    };
    scrolling("plan", table)
}

fn line(node: &ExplainedNode, report: &ExplainReport, longest_ms: f64) -> Markup {
    let depth = node.depth().min(DEEPEST);
    let indent = (depth > 0).then(|| format!("margin-left: {:.2}em", 1.15 * (depth - 1) as f64));
    let at = |ms: f64| fraction(ms, longest_ms);
    html! {
        tr.first[node.corrected_rank == Some(1)] {
            th scope="row" { span.title.child[depth > 0] style=[indent] { (node.title) } }
            td title=(format!("{} reported, {} corrected", ms(node.reported_self_ms), ms(node.corrected_self_ms))) {
                div.track aria-hidden="true" { i.reported style=(extent(0.0, at(node.reported_self_ms))) {} }
                div.track aria-hidden="true" {
                    i style=(extent(0.0, at(node.corrected_self_ms))) {}
                    i.error style=(extent(at(node.self_ms.low), at(node.self_ms.high))) {}
                }
            }
            td.number { (signed(&with_margin(node.self_ms))) " ms" }
            td.number { (rank(node, report)) }
            td.number { (reported(node)) " ms" }
            td.number { (ms(node.corrected_ms.estimate)) br; span.muted { (signed(&interval(node.corrected_ms))) } }
            td.number { (clock_share(node)) }
            td.number { (crate::human::count(node.calls.round() as u64)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Range;

    fn node(path: &str, title: &str, reported: f64, corrected: [f64; 3]) -> ExplainedNode {
        let [low, estimate, high] = corrected;
        ExplainedNode {
            path: path.into(),
            title: title.into(),
            reported_self_ms: reported,
            corrected_self_ms: estimate,
            self_ms: Range { low, estimate, high },
            corrected_rank: Some(1),
            ..Default::default()
        }
    }

    #[test]
    fn bars_show_the_times_and_the_interval() {
        let nodes = vec![node("0", "a <b>", 100.0, [10.0, 25.0, 40.0]), node("0.0", "c", 50.0, [0.0, 0.0, 0.0])];
        let text = tree(&ExplainReport { nodes, ..Default::default() }).into_string();
        for part in
            ["left: 0.00%; width: 100.00%", "left: 0.00%; width: 25.00%", "left: 10.00%; width: 30.00%", "a &lt;b&gt;"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// A damaged plan can be nested deeply, and a file can contain any times.
    #[test]
    fn unusual_nodes_have_rows() {
        let deep = vec!["0"; 90].join(".");
        let nodes = vec![node(&deep, "d", -5.0, [-1.0, 1e300, -7.0])];
        let text = tree(&ExplainReport { nodes, ..Default::default() }).into_string();
        assert!(text.contains("margin-left: 12.65em") && !text.contains("NaN") && !text.contains("inf%"), "{text}");
    }
}
