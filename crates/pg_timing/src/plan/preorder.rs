//! Restores the indentation of a plan from the kinds of its nodes. EXPLAIN prints a node before its inputs, and the numbers of
//! inputs of most kinds are known. An Append has inputs until they have all of its rows.

use super::kinds::{inputs, is_append};
use super::node_line::{ARROW, NodeLine, node_line};
use super::text::{TextError, label};
use super::tree::Node;

/// A node whose inputs may follow.
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

/// Whether another node can be an input.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    One,
    None,
    /// the kind does not show it
    Unknown,
}

impl Open {
    /// Returns whether a node can be its next input.
    fn needs(&self, next: Option<&Node>) -> Needs {
        let (own, next) = (self.node.all_rows(), next.map(Node::all_rows).unwrap_or_default());
        match inputs(&self.node.kind) {
            Some((least, most)) if least == most => {
                if self.inputs < most {
                    Needs::One
                } else {
                    Needs::None
                }
            }
            _ if is_append(&self.node.kind) && own.per_loop > self.rows + own.rounding => Needs::One,
            _ if is_append(&self.node.kind)
                && self.rows + next.per_loop > own.per_loop + own.rounding + next.rounding =>
            {
                Needs::None
            }
            Some((_, most)) if self.inputs >= most => Needs::None,
            Some((least, _)) if self.inputs < least => Needs::One,
            _ => Needs::Unknown,
        }
    }
}

/// Returns the plan's lines with the indentation that EXPLAIN prints.
pub fn restored(plan: &str) -> Result<String, TextError> {
    let mut restored = String::with_capacity(2 * plan.len());
    let mut open: Vec<Open> = Vec::new();
    let mut label_above = None;
    for line in plan.lines().filter(|line| !line.trim().is_empty()) {
        let text = line.trim();
        if let Some(label) = label(text).filter(|_| !open.is_empty()) {
            label_above = Some(label);
        } else if let Some(NodeLine { node, .. }) = node_line(line) {
            let column = match open.is_empty() {
                true => 0,
                false => place(&mut open, &node, label_above)?,
            };
            if let Some(label) = label_above {
                restored += &format!("{:column$}{label}\n", "");
            }
            let column = column + if label_above.is_some() { 2 } else { 0 };
            restored += &format!("{:column$}{text}\n", "");
            let inner = column + if text.starts_with(ARROW) { 6 } else { 2 };
            open.push(Open {
                node,
                column: inner,
                inputs: 0,
                rows: 0.0,
                conditions: String::new(),
                number: label_above.take().and_then(number),
            });
        } else {
            // A total is not indented. The reader knows its name.
            let column = if is_total(text) { 0 } else { open.last().map_or(0, |last| last.column) };
            restored += &format!("{:column$}{text}\n", "");
            if let Some(last) = open.last_mut().filter(|_| text.contains("Plan ")) {
                last.conditions += text;
            }
        }
    }
    match open.iter().find(|node| node.needs(None) == Needs::One && !is_append(&node.node.kind)) {
        Some(lacking) => Err(TextError::NoTree(format!("{} has too few inputs", lacking.node.title()))),
        None => Ok(restored),
    }
}

/// Closes the nodes that have all of their inputs, and returns the column of the next one.
fn place(open: &mut Vec<Open>, node: &Node, label: Option<&str>) -> Result<usize, TextError> {
    match label {
        Some(label) => open.truncate(owner(open, label)? + 1),
        None => close(open, node)?,
    }
    let Some(parent) = open.last_mut() else {
        let why = format!("{} has no place: nodes are missing, or are from several plans", node.title());
        return Err(TextError::NoTree(why));
    };
    if label.is_none() {
        parent.inputs += 1;
        parent.rows += node.all_rows().per_loop;
    }
    Ok(parent.column)
}

/// Returns the node that defines a subplan. A SubPlan follows the inputs of the node that has it in a condition. Others are
/// above the inputs of their node, and PostgreSQL numbers them after those within them.
fn owner(open: &[Open], label: &str) -> Result<usize, TextError> {
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
        _ => Err(TextError::NoTree(format!("several nodes can have {label}"))),
    }
}

/// Closes the nodes that have all of their inputs.
fn close(open: &mut Vec<Open>, node: &Node) -> Result<(), TextError> {
    while let Some(last) = open.last() {
        let waiting = || open.iter().rev().skip(1).find(|above| above.needs(Some(node)) != Needs::None);
        match last.needs(Some(node)) {
            Needs::One => break,
            Needs::None => _ = open.pop(),
            Needs::Unknown => match waiting() {
                None => break,
                Some(waiting) => {
                    let [first, second] = [last, waiting].map(|open| open.node.title());
                    return Err(TextError::NoTree(format!("{} can be below {first} or below {second}", node.title())));
                }
            },
        }
    }
    Ok(())
}

fn is_total(text: &str) -> bool {
    [
        "Planning Time:",
        "Planning time:",
        "Execution Time:",
        "Execution time:",
        "Total runtime:",
        "Settings:",
        "JIT:",
        "Planning:",
        "Trigger ",
    ]
    .iter()
    .any(|total| text.starts_with(total))
}
