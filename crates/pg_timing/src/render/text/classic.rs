//! The screen of `explain` without a statement: the overhead per call on this server.

use super::explain::fact;
use super::{BOLD, wrapped};
use crate::render::explain_text::classic::{answer, read};
use crate::render::explain_text::{BASELINE, ExplainText, MARGINS, OVERHEAD, ms, with_margin};
use crate::render::plus_minus::plus_minus;
use crate::report::{ClassicReport, ExplainReport, LiveRuns};

pub fn text(report: &ClassicReport) -> String {
    let mut out = String::new();
    let (Some(count), Some(nested)) = (&report.count.runs, &report.nested.runs) else { return out };
    wrapped(&mut out, "", &answer(count, nested));
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
    for (name, text) in facts.filter(|(name, _)| ![plus_minus(), OVERHEAD, BASELINE].contains(name)) {
        fact(&mut out, name, &text);
    }
    out
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
