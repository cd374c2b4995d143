//! The screen of `explain` without a statement: what a timed call costs on this server.

use super::{BOLD, wrapped};
use crate::render::words::explain::Words;
use crate::render::words::{ms, per_call, with_error};
use crate::report::{ClassicReport, ExplainReport, LiveRuns, Range, ReadCost};

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
    // The first is in the table.
    for (name, fact) in Words::of(&report.count).facts.into_iter().skip(1) {
        wrapped(&mut out, &format!("{name:<11}"), &fact);
    }
    out
}

/// In a DBA's terms: the dearer of the two.
fn answer(count: &LiveRuns, nested: &LiveRuns) -> String {
    const ROWS: f64 = 1e6;
    const NODES: f64 = 3.0;
    let each = |runs: &LiveRuns| runs.clock_per_call_ns + runs.rows_per_call_ns;
    let (count, nested) = (each(count), each(nested));
    let dearer = if count.estimate > nested.estimate { count } else { nested };
    format!(
        "EXPLAIN ANALYZE adds {} ns to each row and plan node on this server: a million rows through three nodes take {} s longer.",
        with_error(dearer),
        with_error(dearer.times(ROWS * NODES / 1e9))
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
            "{} ns of the {} clock, {}; a timed call reads it twice",
            with_error(Range { low, estimate: ns, high }),
            read.clock,
            read.how
        ),
        _ => format!("of the {} clock: {}", read.clock, read.how),
    }
}
