//! The plan as a table: one line per node, with its title at the end as a tree.

use crate::render::columns::{columns, cut};
use crate::render::explain_text::{clock_share, corrected, rank, reported, with_margin};
use crate::render::text::BOLD;
use crate::render::text::WIDTH;
use crate::report::{ExplainReport, ExplainedNode};

/// The names of the columns before the title. The last three are times with children.
const COLUMNS: [&str; 5] = ["rank", "self, ms", "reported", "corrected", "clock"];
/// The heading above the column of self times.
const SELF: &str = "corrected";
/// The heading above the last three columns.
const WITH_CHILDREN: &str = "with children, ms";
/// The spaces after each column.
const GAPS: [usize; 5] = [2, 2, 1, 1, 2];

pub fn tree(report: &ExplainReport) -> String {
    let cells: Vec<[String; 5]> = report.nodes.iter().map(|node| cells(node, report)).collect();
    let mut widths = COLUMNS.map(columns);
    widths[1] = widths[1].max(columns(SELF));
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let figures_width: usize = widths.iter().chain(&GAPS).sum();
    let title_width = WIDTH.saturating_sub(figures_width).max(MIN_TITLE);
    let indent = indent_per_level(report, title_width);
    let mut out = format!("{BOLD}{}{BOLD:#}\n", groups(&widths));
    out.push_str(&format!("{BOLD}{}{BOLD:#}\n", row(&COLUMNS.map(String::from), &widths, "node")));
    for (node, cells) in report.nodes.iter().zip(&cells) {
        // A damaged plan can be nested so deeply that no column is left for the title.
        let indent = (indent * node.depth()).min(title_width - MIN_TITLE);
        let title = " ".repeat(indent) + &shortened(&node.title, title_width - indent);
        out.push_str(&row(cells, &widths, &title));
        out.push('\n');
    }
    out
}

/// Returns the cells of a node in the order of the columns.
fn cells(node: &ExplainedNode, report: &ExplainReport) -> [String; 5] {
    [rank(node, report), with_margin(node.self_ms), reported(node), corrected(node), clock_share(node)]
}

/// Returns the line above the names of the columns.
fn groups(widths: &[usize; 5]) -> String {
    let [rank, own, with_children @ ..] = widths;
    let with_children: usize = with_children.iter().chain(&GAPS[2..4]).sum();
    let before_own = rank + GAPS[0] + own;
    let between = GAPS[1] + with_children;
    format!("{SELF:>before_own$}{:>between$}", format!("{WITH_CHILDREN:^with_children$}")).trim_end().into()
}

/// Returns a line of the table. The rank is on the left of its column, so that ranks are below each other.
fn row(cells: &[String; 5], widths: &[usize; 5], title: &str) -> String {
    let [rank, figures @ ..] = cells;
    let mut line = format!("{rank:<width$}{:gap$}", "", width = widths[0], gap = GAPS[0]);
    for ((cell, &width), gap) in figures.iter().zip(&widths[1..]).zip(&GAPS[1..]) {
        line.push_str(&format!("{cell:>width$}{:gap$}", ""));
    }
    (line + title).trim_end().into()
}

/// The shortest title. It shows the first word of most nodes.
const MIN_TITLE: usize = 12;

/// Returns the number of columns by which a node is to the right of its parent: two, or one if titles would be
/// shortened.
fn indent_per_level(report: &ExplainReport, title_width: usize) -> usize {
    let all_fit =
        |indent: usize| report.nodes.iter().all(|node| indent * node.depth() + columns(&node.title) <= title_width);
    if all_fit(2) { 2 } else { 1 }
}

/// Returns a title with at most `width` columns. The index's name is left out first, because the relation's name
/// says more.
fn shortened(title: &str, width: usize) -> String {
    if columns(title) <= width {
        return title.into();
    }
    let without_index = title
        .split_once(" using ")
        .and_then(|(scan, objects)| Some(format!("{scan} ... on {}", objects.split_once(" on ")?.1)));
    match without_index.filter(|short| columns(short) <= width) {
        Some(short) => short,
        None => cut(title, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{LiveRuns, Range};

    fn node(path: &str, title: &str, self_ms: [f64; 3]) -> ExplainedNode {
        let [low, estimate, high] = self_ms;
        ExplainedNode {
            path: path.into(),
            title: title.into(),
            self_ms: Range { low, estimate, high },
            corrected_self_ms: estimate,
            corrected_self_off_ms: high - estimate,
            corrected_ms: Range { low, estimate: estimate + 100.0, high },
            reported_ms: 12345.6,
            clock_share: 0.5,
            ..Default::default()
        }
    }

    fn ranked(node: ExplainedNode, rank: usize, corrected_rank: usize, reported_self_ms: f64) -> ExplainedNode {
        ExplainedNode { rank: Some(rank), corrected_rank: Some(corrected_rank), reported_self_ms, ..node }
    }

    fn report(nodes: Vec<ExplainedNode>) -> ExplainReport {
        ExplainReport { nodes, reported_ms: 12346.0, runs: Some(LiveRuns::default()), ..Default::default() }
    }

    #[test]
    fn a_node_shows_its_rank_and_its_self_time() {
        let report = report(vec![
            ranked(node("0", "Finalize GroupAggregate", [4400.0, 4567.0, 4734.0]), 2, 1, 4000.0),
            ranked(node("0.0", "Gather Merge", [1200.0, 1234.0, 1300.0]), 1, 2, 8000.0),
            ranked(node("0.0.0", "Parallel Seq Scan on orders", [0.0, 0.2, 0.4]), 3, 3, 0.3),
        ]);
        let text = anstream::adapter::strip_str(&tree(&report)).to_string();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn no_line_is_longer_than_the_screen() {
        let long = "InitPlan 1 (returns $0): Parallel Index Only Scan Backward using orders_pkey on orders";
        let deep = |depth: usize| vec!["0"; depth].join(".");
        let nodes: Vec<_> =
            [1, 2, 10, 90].map(|depth| node(&deep(depth), long, [123_456.0, 234_567.0, 345_678.0])).into();
        let text = anstream::adapter::strip_str(&tree(&report(nodes))).to_string();
        assert!(text.lines().all(|line| columns(line) <= WIDTH), "{text}");
        assert_eq!(text.matches("InitPlan").count(), 4, "{text}");
    }

    #[test]
    fn an_index_is_left_out_before_the_title_is_cut() {
        let title = "Index Scan using orders_customer_id_idx on orders o";
        assert_eq!(shortened(title, 60), title);
        assert_eq!(shortened(title, 40), "Index Scan ... on orders o");
        assert_eq!(shortened(title, 20), "Index Scan using...");
        assert_eq!(shortened("Nested Loop Left Join", 15), "Nested Loop...");
        assert_eq!(shortened("Seq Scan on städte_und_dörfer", 20), "Seq Scan on städt...");
    }
}
