//! Joins the lines that psql's format `wrapped` has broken.
//!
//! psql puts a mark at the end of a broken line: `.` or `…`, or a space with the line style old-ascii. The next line has
//! the mark at its beginning, except with border 0. In the expanded display, the column of names is empty there, and
//! old-ascii has `;` as the separator.

use crate::server::explain::captured::frame::{BARS, without_quotes};
use crate::server::explain::plan::steps;

/// The name column of the expanded display is as wide as its only name.
const NAME_WIDTH: usize = "QUERY PLAN".len();

/// Returns the text with broken lines joined.
pub fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.lines().map(|line| without_quotes(line.trim_end_matches('\r'))).peekable();
    let mut width = None;
    while let Some(mut line) = lines.next() {
        steps::count(line.len());
        if line.is_empty() {
            width = None;
        } else if line.chars().all(|c| c == '-' || c == '─') {
            width = Some(Width::Table(line.chars().count()));
        } else if line.starts_with("* Record ") {
            width = Some(Width::Record(line.chars().count()));
        }
        let mut rest = line;
        while let Some(broken) = lines.peek().and_then(|&next| broken(line, rest, next, width)) {
            joined.push_str(broken.part);
            joined.push_str(broken.between);
            rest = broken.rest;
            line = lines.next().unwrap_or_default();
            steps::count(line.len());
        }
        joined.push_str(rest);
        joined.push('\n');
    }
    joined
}

/// Number of characters of the line above the values.
#[derive(Clone, Copy)]
enum Width {
    /// dashes
    Table(usize),
    /// the heading of a record, in the expanded display with border 0
    Record(usize),
}

/// A line that continues on the next one.
struct Broken<'a> {
    part: &'a str,
    /// a line end if psql broke the line at a line end of the cell
    between: &'static str,
    /// the next line without what psql puts before it
    rest: &'a str,
}

/// Returns how a line continues, if psql has broken it. `rest` is the end of the line that is not joined yet.
fn broken<'a>(line: &str, rest: &'a str, next: &'a str, width: Option<Width>) -> Option<Broken<'a>> {
    let bar = BARS.into_iter().find(|&bar| line.starts_with(bar) && line.ends_with(bar) && next.starts_with(bar));
    let inside = bar.and_then(|bar| rest.strip_suffix(bar)).unwrap_or(rest);
    let begin = bar.and_then(|bar| next.strip_prefix(bar)).unwrap_or(next);
    // What follows the empty name column, if there is one.
    let text = begin.trim_start_matches(' ');
    let names = begin.len() - text.len();
    let in_border_0 = || matches!(width, Some(Width::Table(width)) if line.chars().count() == width + 1);
    let in_record = || matches!(width, Some(Width::Record(width)) if line.chars().count() == width + 1);
    // The expanded display of old-ascii with border 0 has neither a mark nor a separator: a full line continues.
    if names > NAME_WIDTH && !inside.ends_with(['+', '↵']) && in_record() {
        return Some(Broken { part: inside, between: "", rest: &next[NAME_WIDTH + 1..] });
    }
    for mark in ['.', '…'] {
        let Some(part) = inside.strip_suffix(mark) else { continue };
        if bar.is_none() && in_border_0() {
            return Some(Broken { part, between: "", rest: next });
        }
        let after_names = text.strip_prefix(BARS).unwrap_or(text);
        let marked = if names >= NAME_WIDTH { after_names } else { begin };
        if let Some(rest) = marked.strip_prefix(mark) {
            return Some(Broken { part, between: "", rest });
        }
    }
    if names >= NAME_WIDTH
        && let Some(rest) = text.strip_prefix("; ")
    {
        let part = if bar.is_some() { inside.strip_suffix(' ').unwrap_or(inside) } else { inside };
        return Some(Broken { part, between: "", rest });
    }
    if names >= NAME_WIDTH
        && let Some(rest) = text.strip_prefix(": ")
    {
        return Some(Broken { part: inside.trim_end(), between: "\n", rest });
    }
    // Old-ascii: only a broken line reaches the table's right edge.
    let part = inside.strip_suffix(' ').filter(|_| bar.is_none())?;
    if in_border_0() {
        return Some(Broken { part, between: "", rest: next });
    }
    let in_border_1 = matches!(width, Some(Width::Table(width)) if line.chars().count() == width);
    in_border_1.then_some(Broken { part, between: "", rest: begin.strip_prefix(' ')? })
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn broken_lines_are_joined() {
        for (broken, whole) in [
            (" Sort  (co.\n.st=1..\n..2)\n  a\n", " Sort  (cost=1..2)\n  a\n"),
            ("| Sort  (co.|\n|.st=1)     |\n", "| Sort  (cost=1)     |\n"),
            ("│ Sort  (co…│\r\n│…st=1)     │\r\n", "│ Sort  (cost=1)     │\n"),
            ("-------\nSort  (.\ncost=1).\n..2\n", "-------\nSort  (cost=1)..2\n"),
            ("QUERY PLAN | Sort  (co.\n           |.st=1)\n", "QUERY PLAN | Sort  (cost=1)\n"),
            ("QUERY PLAN Sort  (co.\n          .st=1)\n", "QUERY PLAN Sort  (cost=1)\n"),
            ("QUERY PLAN | Sort  (co\n           ; st=1)\n", "QUERY PLAN | Sort  (cost=1)\n"),
            ("| QUERY PLAN | Sort   |\n|            ; (cost) |\n", "| QUERY PLAN | Sort  (cost) |\n"),
            ("QUERY PLAN | [   \n           :   {\n", "QUERY PLAN | [\n  {\n"),
            ("--------\n Sort a \n b\n c\n", "--------\n Sort ab\n c\n"),
            ("------\nSort a \nb\n", "------\nSort ab\n"),
            ("> a.\n> .b\n", "ab\n"),
            // Sentences, and a line end in a condition.
            ("The end.\nThe next.\n", "The end.\nThe next.\n"),
            ("a \n b\n", "a \n b\n"),
        ] {
            assert_eq!(joined(broken), whole, "{broken}");
        }
    }
}
