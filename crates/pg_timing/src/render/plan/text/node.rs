//! The lines of a node and of the nodes below it.

use super::actual::{actual, indented};
use super::{children, properties};
use crate::plan_format::Properties;
use crate::plan_format::keys::{LOOPS, ON_NODE_LINE, SUBPLAN};
use crate::plan_format::lines::COSTS;
use serde_json::Value;

/// Appends the lines of a node at this column. `titles` are the names of the nodes from this one on.
pub fn write<'a>(
    node: &Properties,
    column: usize,
    verbose: bool,
    titles: &mut impl Iterator<Item = &'a str>,
    lines: &mut Vec<String>,
) {
    let mut column = column;
    let label = node.get(SUBPLAN).and_then(Value::as_str);
    if let Some(label) = label {
        lines.push(indented(column, label));
        column += 2;
    }
    let arrow = if column > 0 { "->  " } else { "" };
    let title = titles.next().unwrap_or_default();
    let name = label.and_then(|label| title.strip_prefix(label)?.strip_prefix(": ")).unwrap_or(title);
    lines.push(indented(column, &format!("{arrow}{name}{}", figures(node))));
    let inner = column + arrow.len() + 2;
    lines.extend(properties::lines(node, &ON_NODE_LINE, verbose).iter().map(|line| indented(inner, line)));
    for below in children(node) {
        write(below, inner, verbose, titles, lines);
    }
}

/// Returns the figures at the end of a node's line: `  (cost=...) (actual time=...)`.
fn figures(node: &Properties) -> String {
    let costs = COSTS.write(node);
    let actual = match node.get(LOOPS).and_then(Value::as_f64) {
        Some(loops) if loops > 0.0 => Some(format!("({})", actual(node))),
        Some(_) => Some("(never executed)".into()),
        None => None,
    };
    let figures: Vec<String> = costs.into_iter().chain(actual).collect();
    // explain.c prints two spaces before the costs, and one before what was measured.
    match node.contains_key(COSTS.keys[0]) {
        true => format!("  {}", figures.join(" ")),
        false => format!(" {}", figures.join(" ")),
    }
}
