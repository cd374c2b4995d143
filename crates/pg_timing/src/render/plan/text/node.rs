//! The lines of a node and of the nodes below it.

use super::children;
use super::properties;
use crate::plan_format::keys::{LOOPS, ON_NODE_LINE, ROWS, STARTUP_TIME, SUBPLAN, TOTAL_TIME};
use crate::plan_format::lines::COSTS;
use crate::plan_format::{Properties, shown};
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

pub fn indented(column: usize, line: &str) -> String {
    format!("{:column$}{line}", "")
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

/// Returns `actual time=0.007..0.008 rows=1 loops=1`.
pub fn actual(properties: &Properties) -> String {
    let number = |key| properties.get(key).and_then(Value::as_f64);
    let time = number(STARTUP_TIME).zip(number(TOTAL_TIME));
    let time = time.map_or(String::new(), |(startup, total)| format!("time={startup:.3}..{total:.3} "));
    // PostgreSQL 18 and later print two decimals.
    let rows = properties.get(ROWS).map_or(String::new(), |rows| match rows.as_f64().filter(|_| rows.is_f64()) {
        Some(rows) => format!("{rows:.2}"),
        None => shown(rows),
    });
    format!("actual {time}rows={rows} loops={}", properties.get(LOOPS).map_or(String::new(), shown))
}
