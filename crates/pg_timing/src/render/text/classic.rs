//! The screen of `explain` without a statement: what a timed call costs on this server.

use super::explain::{digits, facts, ms, per_call};
use super::{BOLD, wrapped};
use crate::report::{ClassicReport, ExplainReport, LiveRuns, ReadCost};

pub fn text(report: &ClassicReport) -> String {
    let mut out = String::new();
    let (Some(count), Some(nested)) = (&report.count.runs, &report.nested.runs) else { return out };
    wrapped(&mut out, "", &answer(count, nested));
    out.push_str(&format!(
        "\n{BOLD}{:<28}{:>10}  {:>10}  {:<24}{}{BOLD:#}\n",
        "", "plain", "reported", "clock", "counting rows"
    ));
    out.push_str(&line("count 100 000 rows", &report.count, count));
    out.push_str(&line("100 000 rows in 400 loops", &report.nested, nested));
    out.push('\n');
    wrapped(&mut out, "one read   ", &read(&report.read));
    for (name, fact) in facts(&report.count, count).into_iter().skip(1) {
        wrapped(&mut out, &format!("{name:<11}"), &fact);
    }
    for note in &report.count.notes {
        wrapped(&mut out, "note       ", note);
    }
    out
}

/// In a DBA's terms: the dearer of the two.
fn answer(count: &LiveRuns, nested: &LiveRuns) -> String {
    const ROWS: f64 = 1e6;
    const NODES: f64 = 3.0;
    let each = |runs: &LiveRuns| runs.clock_per_call_ns.estimate + runs.rows_per_call_ns.estimate;
    let ns = each(count).max(each(nested));
    format!(
        "EXPLAIN ANALYZE adds up to {} ns to each row and plan node on this server: a million rows through three nodes take up to {} s longer.",
        digits(ns),
        digits(ns * ROWS * NODES / 1e9)
    )
}

fn line(name: &str, report: &ExplainReport, runs: &LiveRuns) -> String {
    format!(
        "{name:<28}{:>10}  {:>10}  {:<24}{}\n",
        ms(runs.plain_ms),
        ms(report.reported_ms),
        per_call(runs.clock_per_call_ns),
        per_call(runs.rows_per_call_ns)
    )
}

fn read(read: &ReadCost) -> String {
    match (read.ns, read.low_ns, read.high_ns) {
        (Some(ns), Some(low), Some(high)) => format!(
            "{} +-{} ns of the {} clock, {}; a timed call reads it twice",
            digits(ns),
            digits((high - low) / 2.0),
            read.clock,
            read.how
        ),
        _ => format!("of the {} clock: {}", read.clock, read.how),
    }
}
