//! The screen of `explain`: the answer, the plan as a tree, the facts.

use super::{BOLD, wrapped};
use crate::render::explain_text::{ExplainText, clock_share, digits, ms, rank_change, reported};
use crate::render::plus_minus::plus_minus;
use crate::report::{ExplainReport, ExplainedNode};

pub fn text(report: &ExplainReport) -> String {
    let mut out = String::new();
    let ExplainText { answer, facts } = ExplainText::of(report);
    wrapped(&mut out, "", &answer);
    out.push('\n');
    out.push_str(&tree(report));
    out.push('\n');
    for (name, fact) in facts {
        wrapped(&mut out, &format!("{name:<11}"), &fact);
    }
    out
}

fn tree(report: &ExplainReport) -> String {
    let mut out = format!(
        "{BOLD}{:>11}  {:>11} {:>9}  {:>5}  {:>10}  node{BOLD:#}\n",
        "reported",
        "corrected",
        plus_minus(),
        "clock",
        "calls"
    );
    for node in &report.nodes {
        let indent = "  ".repeat(node.depth);
        out.push_str(&format!(
            "{:>11}  {:>11} {:>9}  {:>5}  {:>10}  {indent}{}{}\n",
            reported(node),
            ms(node.corrected_ms.estimate),
            digits(node.corrected_ms.half_width()),
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
