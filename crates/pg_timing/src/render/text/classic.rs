//! The screen of `explain` without a statement: the overhead per call on this server.

use super::explain::{WIDTH, fact};
use super::{BOLD, wrapped_to};
use crate::render::explain_text::{ExplainText, MARGINS, OVERHEAD, UNDISTURBED, ms, with_margin};
use crate::render::plus_minus::plus_minus;
use crate::report::{ClassicReport, ExplainReport, LiveRuns, Range, ReadCost};

pub fn text(report: &ClassicReport) -> String {
    let mut out = String::new();
    let (Some(count), Some(nested)) = (&report.count.runs, &report.nested.runs) else { return out };
    wrapped_to(WIDTH, &mut out, "", &answer(count, nested));
    out.push_str(&format!(
        "\n{BOLD}{:<26}{:>9}{:>10}  {:<16}{}{BOLD:#}\n",
        "", "baseline", "reported", "clock per call", "counting per call"
    ));
    out.push_str(&line("count 100 000 rows", &report.count, count));
    out.push_str(&line("100 000 rows in 400 loops", &report.nested, nested));
    out.push('\n');
    fact(&mut out, "one read", &read(&report.read));
    fact(&mut out, plus_minus(), MARGINS);
    // The table already has the facts about the runs.
    let facts = ExplainText::of(&report.count).facts.into_iter();
    for (name, text) in facts.filter(|(name, _)| ![plus_minus(), OVERHEAD, UNDISTURBED].contains(name)) {
        fact(&mut out, name, &text);
    }
    out
}

/// Returns the headline, for the statement with the higher overhead.
fn answer(count: &LiveRuns, nested: &LiveRuns) -> String {
    const ROWS: f64 = 1e6;
    const NODES: f64 = 3.0;
    let per_row = |runs: &LiveRuns| runs.clock_per_call_ns + runs.rows_per_call_ns;
    let (count, nested) = (per_row(count), per_row(nested));
    let higher = if count.estimate > nested.estimate { count } else { nested };
    format!(
        "EXPLAIN ANALYZE adds {} ns per row and plan node on this server. For a million rows through three nodes that is {} s.",
        with_margin(higher),
        with_margin(higher.times(ROWS * NODES / 1e9))
    )
}

fn line(name: &str, report: &ExplainReport, runs: &LiveRuns) -> String {
    format!(
        "{name:<26}{:>9}{:>10}  {:<16}{} ns\n",
        ms(runs.plain_ms),
        ms(report.reported_ms),
        format!("{} ns", with_margin(runs.clock_per_call_ns)),
        with_margin(runs.rows_per_call_ns)
    )
}

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
