//! The text screens. The check's screen is here.

pub mod advise;
pub mod classic;
pub(in crate::render) mod clocks;
pub mod clocksource;
pub mod compare;
pub mod explain;
mod findings;
mod kernel;
mod lines;
pub mod log;
mod table;

use crate::render::columns::columns;
use crate::report::Report;
use anstyle::{AnsiColor, Style};

/// Renders a host's report: blocks of styled text with an empty line between them. The writer removes the styles if the
/// output is not a terminal.
pub fn text(report: &Report) -> String {
    let mut blocks = vec![lines::headline(report), clocks::table(report), lines::facts(report)];
    blocks.extend(findings::alarms(report));
    blocks.push(findings::not_determined(report));
    blocks.push(lines::verdict(&report.verdict));
    blocks.push(lines::interrupted(report));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Returns the style of a severity.
fn style(severity: crate::report::Severity) -> Style {
    use crate::report::Severity::*;
    let color = match severity {
        Ok => AnsiColor::Green,
        Warning => AnsiColor::Yellow,
        Critical => AnsiColor::Red,
        Unknown => AnsiColor::Cyan,
    };
    Style::new().bold().fg_color(Some(color.into()))
}

/// The columns of the smallest usual terminal.
const WIDTH: usize = 80;

/// Appends `text` in lines of at most [`WIDTH`] columns. The first line starts with `first`; the others are indented by the
/// same width.
fn wrapped(out: &mut String, first: &str, text: &str) {
    let indent = columns(first);
    let mut line = first.to_string();
    let mut used = indent;
    for word in text.split_whitespace() {
        let length = columns(word);
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
