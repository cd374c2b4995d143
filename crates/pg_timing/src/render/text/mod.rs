//! The screen: what a DBA sees after five seconds.

pub mod advise;
pub mod classic;
mod clocks;
pub mod clocksource;
pub mod explain;
mod findings;
mod kernel;
mod lines;

use crate::report::Report;
use anstyle::{AnsiColor, Style};

/// The report as styled text: blocks with an empty line between them. The writer that prints it
/// drops the colours where they do not belong.
pub fn text(report: &Report) -> String {
    let mut blocks = vec![lines::headline(report), clocks::table(report), lines::facts(report)];
    blocks.extend(findings::bad(report));
    blocks.push(findings::unknown(report));
    blocks.push(lines::verdict(&report.verdict));
    blocks.push(lines::interrupted(report));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The colour of a severity.
fn style(severity: crate::report::Severity) -> Style {
    use crate::report::Severity::*;
    let colour = match severity {
        Ok => AnsiColor::Green,
        Warning => AnsiColor::Yellow,
        Critical => AnsiColor::Red,
        Unknown => AnsiColor::Cyan,
    };
    Style::new().bold().fg_color(Some(colour.into()))
}

/// Breaks `text` into lines of at most 100 columns; the first starts after `first`, the others
/// after as many spaces.
fn wrapped(out: &mut String, first: &str, text: &str) {
    const WIDTH: usize = 100;
    let indent = first.chars().count();
    let mut line = first.to_string();
    let mut used = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > indent && used + 1 + length > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            used = indent;
        }
        if used > indent {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}
