//! The screen of `explain --top`: two lines per statement, the figures and the text.

use super::advise::read;
use super::{BOLD, DIM, wrapped_to};
use crate::render::top_text::{
    added, executions, headline, legend, mean, node_calls, one_line, period, share, skipped,
};
use crate::report::TopReport;

const WIDTH: usize = 80;

pub fn text(report: &TopReport) -> String {
    let mut out = String::new();
    let mut line = |first: &str, text: &str| wrapped_to(WIDTH, &mut out, first, text);
    line("", &headline(report));
    line("clock      ", &read(&report.read));
    line("counted    ", &period(report));
    if !report.statements.is_empty() {
        out.push('\n');
        let head = row(["executions", "mean", "node calls", "timing adds", "share"]);
        out.push_str(&format!("{BOLD}{head}{BOLD:#}\n"));
        for statement in &report.statements {
            let figures =
                [executions(statement), mean(statement), node_calls(statement), added(statement), share(statement)];
            out.push_str(&row(figures.each_ref().map(String::as_str)));
            out.push_str(&format!("\n    {}\n", cut(&one_line(statement), WIDTH - 4)));
        }
        let mut words = String::new();
        wrapped_to(WIDTH, &mut words, "", legend());
        out.push_str(&format!("{DIM}{}{DIM:#}\n", words.trim_end()));
    }
    if !report.skipped.is_empty() {
        out.push('\n');
    }
    for entry in &report.skipped {
        wrapped_to(WIDTH, &mut out, "skipped  ", &skipped(entry));
    }
    if report.interrupted {
        out.push_str("Stopped early: some statements are missing.\n");
    }
    out
}

fn row([executions, mean, node_calls, added, share]: [&str; 5]) -> String {
    format!("{executions:>10}  {mean:>8}  {node_calls:>16}  {added:>18}  {share:>15}")
}

/// Returns the text, at most `width` characters long.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width - 3).collect::<String>() + "...",
        None => text.into(),
    }
}
