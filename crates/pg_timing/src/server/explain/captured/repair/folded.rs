//! Joins the lines that a mail program, a ticket or a terminal has broken at its width.
//!
//! A node's line ends with the parenthesis after its figures, so it is known where it ends. Its figures have spaces only at
//! known places, so it does not matter whether a break was at a space.

use crate::report::is_measured;
use crate::server::explain::captured::node_line::{Ran, column, names_node, node_line};
use crate::server::explain::plan::steps;

/// A node's line has about 100 characters and its indentation, and no mail is narrower than 40 columns.
const MAX_PARTS: usize = 12;

/// Returns whether the first line of a text is the beginning of a root's line that continues on the next line.
pub fn begins(text: &str) -> bool {
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default().trim();
    if !names_node(line) || node_line(line).is_some() {
        return false;
    }
    match line.rfind('(') {
        Some(last) => ["(cost=", "(actual"].iter().any(|part| line.contains(part)) && !line[last..].contains(')'),
        None => lines.next().is_some_and(|next| begins_with_figures(next.trim())),
    }
}

/// Returns whether a line has an arrow and a node's name, but not all of its figures.
pub fn is_open(line: &str) -> bool {
    (begins_node(line) || names_node(line.trim())) && line.trim() != "->  Task" && node_line(line).is_none()
}

fn begins_with_figures(text: &str) -> bool {
    ["(cost=", "(actual ", "(never executed)"].iter().any(|part| text.starts_with(part))
}

/// Returns whether a condition continues on the next line.
pub fn has_broken_condition(plan: &str) -> bool {
    plan.lines().any(|line| !is_balanced(line) && node_line(line).is_none())
}

/// Returns the lines of a plan with broken lines joined.
pub fn joined(plan: &str) -> String {
    let mut joined = String::with_capacity(plan.len());
    let mut lines = plan.lines().peekable();
    let root = lines.peek().map_or(0, |line| column(line));
    let mut is_root = true;
    let terminal = terminal_width(plan);
    if terminal.is_some() && has_broken_indentation(plan) {
        return plan.into();
    }
    while let Some(line) = lines.next() {
        let mut parts = vec![line];
        let is_node = is_root || line.trim_start().starts_with("->");
        is_root = false;
        let mut is_complete = match node_line(line) {
            Some(node) => node.ran != Ran::Unknown,
            None => !is_node && is_balanced(line),
        };
        while let Some(&next) = lines.peek() {
            steps::count(next.len());
            let continues = match is_node {
                true => {
                    !is_complete
                        && !begins_node(next)
                        && (node_line(line).is_none() || begins_with_figures(next.trim()))
                }
                false => column(line) > root && !begins_line(next, is_complete),
            };
            if !continues || next.trim().is_empty() || parts.len() == MAX_PARTS {
                break;
            }
            parts.push(next);
            lines.next();
            is_complete = if is_node { node_of(&parts, terminal).is_some() } else { is_balanced(&parts.concat()) };
        }
        match if is_node && parts.len() > 1 { node_of(&parts, terminal) } else { None } {
            Some(node) => joined.push_str(&node),
            None if is_node => joined.push_str(&parts.join("\n")),
            None => {
                joined.push_str(line);
                for pair in parts.windows(2) {
                    joined.push_str(separator(pair[0], pair[1].trim()));
                    joined.push_str(pair[1].trim());
                }
            }
        }
        joined.push('\n');
    }
    joined
}

/// Returns whether a line is the beginning of a node's line. A condition can have an arrow, too: `-> 'a'`.
fn begins_node(line: &str) -> bool {
    let name = line.trim().strip_prefix("->").map(str::trim_start);
    name.is_some_and(|name| name.is_empty() || names_node(name))
}

/// Returns whether a line is not the continuation of a condition. A complete condition continues only with a line that
/// has no name.
fn begins_line(line: &str, is_complete: bool) -> bool {
    let text = line.trim();
    begins_node(line) && node_line(line).is_some()
        || is_complete && (text.contains(": ") || text.ends_with(':') || begins_node(line) || names_label(text))
        || node_line(line).is_some()
}

fn names_label(text: &str) -> bool {
    ["CTE ", "InitPlan", "SubPlan"].iter().any(|label| text.starts_with(label))
}

/// Returns what was at a break in a condition. A terminal breaks a line anywhere, also in a name or a number. This matters
/// only for parameters: `$1` and `InitPlan 1`.
fn separator(part: &str, next: &str) -> &'static str {
    const LABEL: &str = "InitPlan ";
    let begins_with = |belongs: fn(char) -> bool| next.starts_with(belongs);
    let in_number = part.ends_with(|c: char| c.is_ascii_digit() || c == '$') && begins_with(|c| c.is_ascii_digit());
    let in_label = (1..LABEL.len() - 1).any(|at| part.ends_with(&LABEL[..at]) && next.starts_with(&LABEL[at..]));
    // PostgreSQL 19 has names like expr_1.
    let in_name = part.rsplit_once(LABEL).is_some_and(|(_, name)| {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        !name.is_empty() && name.chars().all(is_name) && begins_with(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    if in_number || in_label || in_name { "" } else { " " }
}

/// Returns the width of the terminal that has broken the lines, if it was a terminal: all broken lines have the same
/// width, except for spaces at their ends.
fn terminal_width(plan: &str) -> Option<usize> {
    const MAX_SPACES: usize = 2;
    let widths = plan.lines().filter(|line| begins_node(line) && is_open(line)).map(|line| line.chars().count());
    let (least, most) = widths.fold((usize::MAX, 0), |(least, most), width| (least.min(width), most.max(width)));
    (least != usize::MAX && least + MAX_SPACES >= most).then_some(most)
}

/// Returns whether a node follows an empty line: that was the beginning of its indentation, so its column is unknown.
fn has_broken_indentation(plan: &str) -> bool {
    let mut lines = plan.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() && lines.peek().is_some_and(|next| begins_node(next)) {
            return true;
        }
    }
    false
}

/// Returns a node's whole line from its parts, if it has all of its figures. A break in the node's name was at a space, or
/// anywhere if a terminal of this width made it. It does not matter for the figures.
fn node_of(parts: &[&str], terminal: Option<usize>) -> Option<String> {
    let whole = parts.iter().skip(1).fold(parts[0].trim_end().to_string(), |whole, part| whole + part.trim());
    let figures =
        whole.rfind("(cost=").or_else(|| whole.rfind("(actual")).or_else(|| whole.rfind("(neverexecuted)"))?;
    let spaced = with_spaces(&whole[figures..]);
    let line = |terminal: Option<usize>| {
        let mut name = String::new();
        let mut end = 0;
        for (n, part) in parts.iter().enumerate() {
            let is_whole = n > 0 && terminal == Some(parts[n - 1].chars().count()) && !part.starts_with(' ');
            let text = if n == 0 { part.trim_end() } else { part.trim() };
            name.push_str(if n == 0 || end >= figures || is_whole { "" } else { " " });
            name.push_str(&text[..text.len().min(figures.saturating_sub(end))]);
            end += text.len();
        }
        format!("{}  {spaced}", name.trim_end())
    };
    let lines = [line(terminal), line(None)];
    let known = |line: &&String| node_line(line).is_some_and(|node| is_measured(&node.node.kind));
    let line = lines.iter().find(known).unwrap_or(&lines[0]);
    node_line(line).filter(|node| node.ran != Ran::Unknown)?;
    Some(line.clone())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::explain::captured::text::TextError;
    use proptest::prelude::*;

    const PLAN: &str = "\
Nested Loop Left Join  (cost=4.30..37.33 rows=5 width=8) (actual time=0.036..0.075 rows=5.00 loops=1)
  InitPlan 1
    ->  Parallel Index Only Scan using t_i on \"T x\" t  (cost=0.15..3.30 rows=1 width=4) (actual time=0.010..0.011 rows=1.00 loops=1)
          Index Cond: ((i > 10) AND (i < 20))
  ->  Seq Scan on a  (cost=0.00..1.00 rows=5 width=4) (actual time=0.010..0.012 rows=5.00 loops=1)
        Filter: ((i > (InitPlan 1).col1) AND ((j -> 'a'::text) <> '(actual time=1.000..2.000 rows=1 loops=1)'::jsonb))
        Rows Removed by Filter: 3
  ->  Index Scan using b_i on b  (cost=0.15..6.17 rows=1 width=4) (never executed)
        Index Cond: (i = a.i)
        SubPlan 2
          ->  Result  (cost=0.00..0.01 rows=1 width=4) (actual rows=1.00 loops=12)
Planning Time: 0.316 ms
Execution Time: 0.130 ms
";

    /// Breaks lines as a mail program does, at spaces.
    fn in_mail(plan: &str, width: usize) -> String {
        let mut text = String::new();
        for line in plan.lines() {
            let mut rest = line;
            while rest.len() > width {
                let indentation = column(rest);
                let Some(at) = rest[..=width].rfind(' ').filter(|&at| at > indentation) else { break };
                text += rest[..at].trim_end();
                text += "\n";
                rest = rest[at..].trim_start();
            }
            text += rest;
            text += "\n";
        }
        text
    }

    /// Breaks lines as a terminal does, at its width. Copying loses the spaces at the end of lines.
    fn in_terminal(plan: &str, width: usize) -> String {
        let mut text = String::new();
        for line in plan.lines() {
            for part in line.as_bytes().chunks(width) {
                text += std::str::from_utf8(part).unwrap().trim_end();
                text += "\n";
            }
        }
        text
    }

    fn read(plan: &str) -> crate::server::explain::plan::Explained {
        super::super::text_plan(plan).unwrap_or_else(|why| panic!("{why:?}: {plan}\n{}", joined(plan)))
    }

    #[test]
    fn folded_plans_are_the_same() {
        let plan = read(PLAN);
        for width in 50..130 {
            assert_eq!(read(&in_mail(PLAN, width)), plan, "{}", in_mail(PLAN, width));
        }
        for width in [72, 80, 100, 120] {
            assert_eq!(read(&in_terminal(PLAN, width)), plan, "{}", in_terminal(PLAN, width));
        }
    }

    #[test]
    fn folded_real_plans_are_the_same() {
        for plan in super::super::tests::real_plans() {
            let whole = read(&plan);
            for width in [60, 72, 80, 100] {
                for folded in [in_mail(&plan, width), in_terminal(&plan, width)] {
                    match super::super::text_plan(&folded) {
                        Ok(read) => assert_eq!(read, whole, "{folded}"),
                        Err(why) => {
                            assert!(why == TextError::Cut && has_broken_indentation(&folded), "{why:?}: {folded}")
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn parameters_are_not_broken() {
        for (part, next, separator) in [
            ("(a > $", "1)", ""),
            ("$1", "2", ""),
            ("(Init", "Plan 1)", ""),
            ("(InitPlan", "1)", " "),
            ("InitPlan ex", "pr_1", ""),
            ("(a AND", "b)", " "),
        ] {
            assert_eq!(super::separator(part, next), separator, "{part} {next}");
        }
    }

    proptest! {
        /// Whatever the width is, a figure is right or the plan is refused.
        #[test]
        fn a_break_anywhere_changes_no_figure(width in 20..140usize) {
            let figures = |text: &str| super::super::text_plan(text).map(|plan| {
                crate::server::explain::plan::Plan::new(plan, 1.0).nodes.into_iter().map(|node| (node.path, node.calls, node.reported_ms)).collect::<Vec<_>>()
            });
            if let Ok(read) = figures(&in_terminal(PLAN, width)) {
                prop_assert_eq!(read, figures(PLAN).unwrap());
            }
        }
    }
}
