//! The screen of `explain`: the answer, the plan as a tree, the facts.

use super::{BOLD, wrapped};
use crate::render::explain_text::{ExplainText, clock_share, interval, ms, rank_change, reported};
use crate::report::{ExplainReport, ExplainedNode};

pub fn text(report: &ExplainReport) -> String {
    let mut out = String::new();
    let ExplainText { answer, facts } = ExplainText::of(report);
    wrapped(&mut out, "", &answer);
    out.push('\n');
    out.push_str(&tree(report));
    out.push('\n');
    for (name, fact) in facts {
        // The longest name is as wide as the column.
        wrapped(&mut out, &format!("{:<11}", format!("{name} ")), &fact);
    }
    out
}

fn tree(report: &ExplainReport) -> String {
    let mut out = format!(
        "{BOLD}{:>11}  {:>11}  {:>15}  {:>5}  {:>10}  node{BOLD:#}\n",
        "reported", "corrected", "95% interval", "clock", "calls"
    );
    for node in &report.nodes {
        let indent = "  ".repeat(node.depth());
        out.push_str(&format!(
            "{:>11}  {:>11}  {:>15}  {:>5}  {:>10}  {indent}{}{}\n",
            reported(node),
            ms(node.corrected_ms.estimate),
            interval(node.corrected_ms),
            clock_share(node),
            crate::human::count(node.calls.round() as u64),
            node.title,
            rank(node, report),
        ));
    }
    out
}

fn rank(node: &ExplainedNode, report: &ExplainReport) -> String {
    rank_change(node, report).map_or(String::new(), |(reported, corrected)| {
        format!("  {BOLD}<- rank {reported} by reported time, {corrected} by corrected time{BOLD:#}")
    })
}
