//! Restores the lines and the indentation of a plan in text format.
//!
//! A mail program, a ticket or a terminal breaks lines at its width. A node's line ends with the parenthesis after its figures,
//! so it is known where it ends. Its figures have spaces only at known places, so it does not matter whether a break was at a
//! space.
//!
//! Lost indentation follows from the kinds of nodes: EXPLAIN prints a node before its inputs, and the numbers of inputs of
//! most kinds are known. An Append has inputs until they have all of its rows.

use super::text::{ARROW, NodeLine, column, is_task, label, names_node, node_line};
use super::tree::{Node, inputs_of, is_append, is_known};
use super::unusable::Unusable;

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
            let continues = match is_node {
                true => node_of(&parts, terminal).is_none() && !begins_node(next.trim()),
                false => column(line) > root && !is_balanced(&parts.concat()) && node_line(next).is_none(),
            };
            if !continues || parts.len() == MAX_PARTS {
                break;
            }
            parts.push(next);
            lines.next();
        }
        joined += &match is_node {
            true => node_of(&parts, terminal).unwrap_or_else(|| parts.join("\n")),
            false => whole(&parts, terminal),
        };
        joined.push('\n');
    }
    joined
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
        node_line(&line).filter(|node| node.node.loops.is_some()).map(|node| (is_known(&node.node.kind), line))
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

/// A node whose inputs may follow.
#[derive(Default)]
struct Open {
    node: Node,
    column: usize,
    /// number of inputs so far, and their rows
    inputs: usize,
    rows: f64,
    /// its conditions contain these subplans
    conditions: String,
    /// number in the label of the subplan that begins with it
    number: Option<u32>,
}

/// Returns the number of a subplan: 2 of `InitPlan 2 (returns $1)`.
fn number(label: &str) -> Option<u32> {
    label.split(' ').nth(1)?.parse().ok()
}

impl Open {
    /// Returns whether it lacks an input. An Append has inputs until they have all of its rows.
    fn lacks_input(&self) -> bool {
        let own = self.node.all_rows();
        match is_append(&self.node.kind) {
            true => own.per_loop > self.rows + own.rounding,
            false => inputs_of(&self.node.kind).is_some_and(|(least, _)| self.inputs < least),
        }
    }

    /// Returns whether a node can be its next input.
    fn can_have(&self, next: &Node) -> bool {
        let (own, next) = (self.node.all_rows(), next.all_rows());
        match is_append(&self.node.kind) {
            true => self.rows + next.per_loop <= own.per_loop + own.rounding + next.rounding,
            false => inputs_of(&self.node.kind).is_none_or(|(_, most)| self.inputs < most),
        }
    }
}

/// Returns the plan's lines with the indentation that EXPLAIN prints.
pub fn restored(plan: &str) -> Result<String, Unusable> {
    let mut restored = String::with_capacity(2 * plan.len());
    let mut open: Vec<Open> = Vec::new();
    let mut label_above = None;
    for line in plan.lines().filter(|line| !line.trim().is_empty()) {
        let text = line.trim();
        if let Some(label) = label(text).filter(|_| !open.is_empty()) {
            label_above = Some(label);
        } else if let Some(NodeLine { node, .. }) = node_line(line) {
            let mut column = if open.is_empty() { 0 } else { place(&mut open, &node, label_above)? };
            if let Some(label) = label_above {
                restored += &format!("{:column$}{label}\n", "");
                column += 2;
            }
            restored += &format!("{:column$}{text}\n", "");
            column += if text.starts_with(ARROW) { 6 } else { 2 };
            open.push(Open { node, column, number: label_above.take().and_then(number), ..Open::default() });
        } else {
            // A total is not indented. The reader knows its name.
            let column = if is_total(text) { 0 } else { open.last().map_or(0, |last| last.column) };
            restored += &format!("{:column$}{text}\n", "");
            if let Some(last) = open.last_mut().filter(|_| text.contains("Plan ")) {
                last.conditions += text;
            }
        }
    }
    match open.iter().find(|node| node.lacks_input() && !is_append(&node.node.kind)) {
        Some(lacking) => Err(Unusable::LostIndentation(format!("{} has too few inputs", lacking.node.title()))),
        None => Ok(restored),
    }
}

/// Closes the nodes that have all of their inputs, and returns the column of the next one.
fn place(open: &mut Vec<Open>, node: &Node, label: Option<&str>) -> Result<usize, Unusable> {
    match label {
        Some(label) => open.truncate(owner(open, label)? + 1),
        None => close(open, node)?,
    }
    let Some(parent) = open.last_mut() else {
        let why = format!("{} has no place: nodes are missing, or are from several plans", node.title());
        return Err(Unusable::LostIndentation(why));
    };
    if label.is_none() {
        parent.inputs += 1;
        parent.rows += node.all_rows().per_loop;
    }
    Ok(parent.column)
}

/// Returns the node that defines a subplan. A SubPlan follows the inputs of the node that has it in a condition. Others are
/// above the inputs of their node, and PostgreSQL numbers them after those within them.
fn owner(open: &[Open], label: &str) -> Result<usize, Unusable> {
    let is_outside = |node: &&Open| node.number.is_none_or(|outer| number(label).is_none_or(|inner| outer > inner));
    let candidates: Vec<usize> = match label.starts_with("SubPlan") {
        true => open.iter().rposition(|node| node.conditions.contains(&format!("{label})"))).into_iter().collect(),
        false => {
            let around = open.iter().take_while(is_outside).enumerate();
            around.filter(|(_, node)| node.inputs == 0).map(|(index, _)| index).collect()
        }
    };
    match candidates[..] {
        [owner] => Ok(owner),
        _ => Err(Unusable::LostIndentation(format!("several nodes can have {label}"))),
    }
}

/// Closes the nodes that have all of their inputs.
fn close(open: &mut Vec<Open>, node: &Node) -> Result<(), Unusable> {
    while open.pop_if(|last| !last.lacks_input() && !last.can_have(node)).is_some() {}
    let waiting = open.iter().rev().skip(1).find(|above| above.lacks_input() || above.can_have(node));
    match open.last().filter(|last| !last.lacks_input()).zip(waiting) {
        Some((last, waiting)) => {
            let [node, first, second] = [node, &last.node, &waiting.node].map(Node::title);
            Err(Unusable::LostIndentation(format!("{node} can be below {first} or below {second}")))
        }
        None => Ok(()),
    }
}

/// Returns whether a line is one of those below the tree. The plan has no indentation, so only the name distinguishes it from a
/// property of a node.
fn is_total(text: &str) -> bool {
    let totals = ["Planning", "Execution", "Total runtime:", "Settings:", "JIT:", "Trigger "];
    totals.iter().any(|total| text.starts_with(total))
}
