//! Joins the lines that a mail program, a ticket or a terminal has broken at its width.
//!
//! A node's line ends with the parenthesis after its figures, so it is known where it ends. Its figures have spaces only at
//! known places, so it does not matter whether a break was at a space.

use super::kinds::is_known;
use super::node_line::{ARROW, Ran, column, names_node, node_line};
use super::steps;
use super::text::{is_task, label};

/// A node's line has about 100 characters and its indentation, and no mail is narrower than 40 columns.
const MAX_PARTS: usize = 12;

/// Returns whether a line has an arrow and a node's name, but not all of its figures.
pub fn is_open(line: &str) -> bool {
    let text = line.trim();
    (begins_node(text) || names_node(text)) && !is_task(text) && label(text).is_none() && node_line(line).is_none()
}

/// Returns whether a condition continues on the next line.
pub fn has_broken_condition(plan: &str) -> bool {
    plan.lines().any(|line| !is_balanced(line) && node_line(line).is_none())
}

/// Returns the lines of a plan with broken lines joined.
pub fn joined(plan: &str) -> String {
    let mut joined = String::with_capacity(plan.len());
    let mut lines = plan.lines().filter(|line| !line.trim().is_empty()).peekable();
    let root = lines.peek().map_or(0, |line| column(line));
    let mut is_root = true;
    let terminal = terminal_width(plan);
    if terminal.is_some() && has_broken_indentation(plan) {
        return plan.into();
    }
    while let Some(line) = lines.next() {
        let is_node = std::mem::take(&mut is_root) || begins_node(line.trim());
        let mut parts = vec![line];
        while let Some(&next) = lines.peek() {
            steps::count(next.len());
            let continues = match is_node {
                true => !is_complete(&parts, terminal) && !begins_node(next.trim()),
                false => column(line) > root && !is_balanced(&parts.concat()) && node_line(next).is_none(),
            };
            if !continues || parts.len() == MAX_PARTS {
                break;
            }
            parts.push(next);
            lines.next();
        }
        match node_of(&parts, terminal).filter(|_| is_node && parts.len() > 1) {
            Some(node) => joined += &node,
            None if is_node => joined += &parts.join("\n"),
            None => {
                joined += &whole(&parts, terminal);
            }
        }
        joined.push('\n');
    }
    joined
}

/// Returns whether the parts of a node's line have all of its figures.
fn is_complete(parts: &[&str], terminal: Option<usize>) -> bool {
    match parts {
        [line] => node_line(line).is_some_and(|node| node.ran != Ran::Unknown),
        parts => node_of(parts, terminal).is_some(),
    }
}

/// Returns whether a line is the beginning of a node's line. A condition can have an arrow, too: `-> 'a'`.
fn begins_node(text: &str) -> bool {
    let name = text.strip_prefix(ARROW).map(str::trim_start);
    name.is_some_and(|name| name.is_empty() || names_node(name))
}

/// Returns the width of the terminal that has broken the lines, if it was a terminal: all broken lines have the same
/// width, except for spaces at their ends.
fn terminal_width(plan: &str) -> Option<usize> {
    const MAX_SPACES: usize = 2;
    let widths = plan.lines().filter(|line| begins_node(line.trim()) && is_open(line)).map(|line| line.chars().count());
    let (least, most) = widths.fold((usize::MAX, 0), |(least, most), width| (least.min(width), most.max(width)));
    (least != usize::MAX && least + MAX_SPACES >= most).then_some(most)
}

/// Returns whether a node follows an empty line: that was the beginning of its indentation, so its column is unknown.
fn has_broken_indentation(plan: &str) -> bool {
    let next = plan.lines().skip(1);
    plan.lines().zip(next).any(|(line, next)| line.trim().is_empty() && begins_node(next.trim()))
}

/// Returns the line that was broken into parts: at a space, or anywhere if a terminal of this width has broken it.
fn whole(parts: &[&str], terminal: Option<usize>) -> String {
    let mut whole = parts[0].trim_end().to_string();
    for pair in parts.windows(2) {
        let is_within_word = terminal == Some(pair[0].chars().count()) && !pair[1].starts_with(' ');
        whole += if is_within_word { "" } else { " " };
        whole += pair[1].trim();
    }
    whole
}

/// Returns a node's whole line from its parts, if it has all of its figures.
fn node_of(parts: &[&str], terminal: Option<usize>) -> Option<String> {
    let line = |terminal: Option<usize>| {
        let whole = whole(parts, terminal);
        let dense: String = whole.split(' ').collect();
        // The figures begin where as many characters, without spaces, are left as in the dense line.
        let figures =
            ["(cost=", "(actual", "(neverexecuted)"].iter().filter_map(|figures| dense.rfind(figures)).min()?;
        let before = dense[..figures].chars().count();
        let (at, _) = whole.char_indices().filter(|(_, c)| *c != ' ').nth(before)?;
        let line = format!("{}  {}", whole[..at].trim_end(), with_spaces(&whole[at..]));
        node_line(&line).filter(|node| node.ran != Ran::Unknown).map(|node| (is_known(&node.node.kind), line))
    };
    let lines = [line(terminal), line(None)];
    let known = lines.iter().flatten().find(|(is_known, _)| *is_known);
    known.or_else(|| lines.iter().flatten().next()).map(|(_, line)| line.clone())
}

/// Returns a node's figures with spaces only where EXPLAIN prints them.
fn with_spaces(figures: &str) -> String {
    let mut text: String = figures.split(' ').collect();
    for (without, with) in [
        ("rows=", " rows="),
        ("width=", " width="),
        ("loops=", " loops="),
        ("(actualtime=", " (actual time="),
        ("(actual rows=", " (actual rows="),
        ("(neverexecuted)", " (never executed)"),
    ] {
        text = text.replace(without, with);
    }
    text.trim_start().to_string()
}

/// Returns whether all parentheses outside of quotation marks are closed.
fn is_balanced(line: &str) -> bool {
    let (mut depth, mut quote) = (0_i32, None);
    for byte in line.bytes() {
        match (byte, quote) {
            (b'\'' | b'"', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b'(', None) => depth += 1,
            (b')', None) => depth -= 1,
            _ => {}
        }
    }
    depth <= 0 && quote.is_none()
}
