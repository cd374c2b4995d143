//! The result of `explain` on one statement or plan: the answer, where the time goes, the plan, and the facts.

use super::{Bar, Block, Cell, Column, Document, Facts, Place, Row, Shares, Table, fraction};
use crate::document::explain_text::{
    BASELINE, ExplainText, MARGINS, OVERHEAD, Parts, clock_share, corrected, counting_name, interval, ms, rank,
    reported, with_margin,
};
use crate::human::{PLUS_MINUS, count, percent};
use crate::report::{ClassicReport, ExplainReport, ExplainedNode, LiveRuns, Range, ReadCost};

pub const TITLE: &str = "Overhead of EXPLAIN ANALYZE";

/// The longest name of a fact, "unexplained", and a space.
const NAMES: usize = 12;

pub fn document(report: &ExplainReport) -> Document {
    let ExplainText { answer, facts } = ExplainText::of(report);
    // The page has the whole statement above the plan.
    let (beginning, facts): (Vec<_>, Vec<_>) = facts.into_iter().partition(|(name, _)| *name == "statement");
    let statement = report.statement.clone().map(Block::Code);
    let mut blocks = vec![Block::Page(statement.into_iter().collect())];
    if report.has_figures() {
        blocks.push(Block::Shares(shares(report)));
        if !report.nodes.is_empty() {
            blocks.push(Block::Part("Plan", vec![Block::Table(plan(report))]));
        }
    }
    let [facts, beginning] = [facts, beginning].map(|facts| Block::Facts(Facts::new(NAMES, facts)));
    let figures = vec![facts, Block::Screen(vec![beginning])];
    blocks.push(Block::Part("How these figures were made, and their limits", figures));
    Document::answer(&answer).with(blocks)
}

/// Returns the plan as a tree.
fn plan(report: &ExplainReport) -> Table {
    let times = report.nodes.iter().flat_map(|node| [node.reported_self_ms, node.corrected_self_ms]);
    let longest_ms = times.fold(0.0, f64::max);
    let below = |head: &str| Column::right(head).group("with children, ms");
    let keys = &[("reported", "reported self"), ("", "corrected self")];
    Table {
        name: "plan".into(),
        columns: vec![
            Column::left("rank"),
            Column::right("self, ms").group("corrected"),
            below("reported"),
            below("corrected"),
            below("clock"),
            Column::right("calls").at(Place::Page),
            Column { keys, ..Column::left("self times").at(Place::Page) },
            Column::left("node").at(Place::Tree),
        ],
        rows: report.nodes.iter().map(|node| row(node, report, longest_ms)).collect(),
        ..Table::default()
    }
}

fn row(node: &ExplainedNode, report: &ExplainReport, longest_ms: f64) -> Row {
    let bar =
        |class, low: f64, high: f64| Bar { class, start: fraction(low, longest_ms), end: fraction(high, longest_ms) };
    let bars = vec![
        vec![bar("reported", 0.0, node.reported_self_ms)],
        vec![bar("", 0.0, node.corrected_self_ms), bar("error", node.self_ms.low, node.self_ms.high)],
    ];
    let cells = [
        rank(node, report).into(),
        with_margin(node.self_ms).into(),
        reported(node).into(),
        Cell { notes: vec![interval(node.corrected_ms)], ..corrected(node).into() },
        clock_share(node).into(),
        count(node.calls.round() as u64).into(),
        Cell { bars, ..Cell::default() },
        Cell { depth: node.depth(), ..node.title.as_str().into() },
    ];
    Row { is_bold: node.corrected_rank == Some(1), ..Row::new(cells) }
}

/// Returns where the reported time goes. The parts add up to it.
fn shares(report: &ExplainReport) -> Shares {
    let reported = report.reported_ms;
    // In a live report, the unexplained time is a part of the corrected time, and has its own part here.
    let shift = if report.runs.is_some() { report.unexplained_share * reported } else { 0.0 };
    let without = |ms: f64| (ms - shift).max(0.0);
    let Range { low, estimate, high } = report.corrected_ms;
    let range = Range { low: without(low), estimate: without(estimate), high: without(high) };
    let Parts { rest, clock, counting, unexplained } = Parts::of(report);
    let parts = [
        ("", "without overhead", rest),
        ("reported", "clock reads", clock),
        ("counting", counting_name(report), counting),
        ("unexplained", "unexplained", unexplained),
    ];
    // Below 1 us it is a rounding error.
    let shown = parts.into_iter().filter(|(.., ms)| *ms > 0.001).collect::<Vec<_>>();
    // The parts of runs at different times can exceed the reported time.
    let sum = shown.iter().map(|(.., ms)| ms).sum::<f64>().max(reported);
    let mut end = 0.0;
    let part = |(class, name, time): (&'static str, &str, f64)| {
        let start = end;
        end += fraction(time, sum);
        let share = percent(fraction(time, reported));
        let bounds = if class.is_empty() { format!(", interval {} ms", interval(range)) } else { String::new() };
        (Bar { class, start, end }, format!("{name} {} ({share}){bounds}", ms(time)))
    };
    let parts = shown.into_iter().map(part).collect();
    Shares { parts, interval: Bar { class: "", start: fraction(range.low, sum), end: fraction(range.high, sum) } }
}

/// Returns the result of `explain` without a statement: the overhead per call on this server.
pub fn classic(report: &ClassicReport) -> Document {
    let (Some(count), Some(nested)) = (&report.count.runs, &report.nested.runs) else { return Document::default() };
    let heads = ["baseline", "reported", "clock per call", "counting per call"].map(Column::right);
    let table = Table {
        name: "statements".into(),
        columns: [Column::left("statement")].into_iter().chain(heads).collect(),
        rows: vec![
            classic_row("count 100 000 rows", &report.count, count),
            classic_row("100 000 rows in 400 loops", &report.nested, nested),
        ],
        ..Table::default()
    };
    let mut facts = vec![("one read", read(&report.read)), (PLUS_MINUS, MARGINS.into())];
    // The table already has the facts about the runs.
    let others = ExplainText::of(&report.count).facts.into_iter();
    facts.extend(others.filter(|(name, _)| ![PLUS_MINUS, OVERHEAD, BASELINE].contains(name)));
    let blocks = vec![Block::Table(table), Block::Facts(Facts::new(NAMES, facts))];
    Document::answer(&classic_answer(count, nested)).with(blocks)
}

/// Returns the headline, for the statement with the higher overhead.
fn classic_answer(count: &LiveRuns, nested: &LiveRuns) -> String {
    const ROWS: f64 = 1e6;
    const NODES: f64 = 3.0;
    let [count, nested] = [count, nested].map(|runs| runs.clock_per_call_ns + runs.rows_per_call_ns);
    let higher = if count.estimate > nested.estimate { count } else { nested };
    format!(
        "EXPLAIN ANALYZE adds {} ns per row and plan node on this server. For a million rows through three nodes that is {} s.",
        with_margin(higher),
        with_margin(higher.times(ROWS * NODES / 1e9))
    )
}

/// Returns the read cost of the server's clock.
fn read(read: &ReadCost) -> String {
    match (read.ns, read.low_ns, read.high_ns) {
        (Some(ns), Some(low), Some(high)) => format!(
            "{} ns for the {} clock, {}; a timed call reads it twice",
            with_margin(Range { low, estimate: ns, high }),
            read.clock,
            read.how
        ),
        _ => format!("not determined for the {} clock: {}", read.clock, read.how),
    }
}

fn classic_row(name: &str, report: &ExplainReport, runs: &LiveRuns) -> Row {
    let per_call = |ns| format!("{} ns", with_margin(ns));
    let [clock, rows] = [runs.clock_per_call_ns, runs.rows_per_call_ns].map(per_call);
    Row::new([name.into(), ms(runs.plain_ms), ms(report.reported_ms), clock, rows])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(reported_ms: f64, corrected: f64) -> ExplainReport {
        let corrected_ms = Range { low: corrected / 2.0, estimate: corrected, high: corrected * 2.0 };
        ExplainReport { reported_ms, corrected_ms, clock_share: 0.5, unexplained_share: 0.125, ..Default::default() }
    }

    #[test]
    fn the_parts_add_up_to_the_reported_time() {
        let Shares { parts, .. } = shares(&report(1000.0, 250.0));
        let ends: Vec<f64> = parts.iter().map(|(bar, _)| bar.end).collect();
        assert_eq!(ends, [0.25, 0.75, 0.875, 1.0]);
        assert_eq!(parts[1].1, "clock reads 500 ms (50%)");
    }
}
