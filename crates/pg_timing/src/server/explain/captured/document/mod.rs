//! A captured plan as a document that keeps all of its properties.

mod element;
mod name;
mod plan;
mod property;
mod totals;

use super::node_line::{column, node_line};
use super::unreadable::Source;
use crate::plan_format::keys::EXECUTION_TIME;
use crate::plan_format::{LineTimes, PlanDocument, PlanFormat, TextLine};
use crate::server::explain::plan::Explained;

/// Returns the document of a plan that was read from this source. A plan in JSON format stays in that format; one in text
/// format becomes JSON if that is needed.
pub fn new(source: &Source<String>, format: PlanFormat, explained: &Explained) -> PlanDocument {
    match (source, format) {
        // The same JSON was read before, so there is no error.
        (Source::Json(json), _) => PlanDocument::Json(serde_json::from_str(json).unwrap_or_default()),
        (Source::Text(text), PlanFormat::Text) => PlanDocument::Text(lines(text)),
        (Source::Text(text), PlanFormat::Json) => PlanDocument::Json(plan::json(&lines(text), explained)),
    }
}

/// Returns the lines of the plan at the beginning of a text, without the spaces that are before each of them.
fn lines(text: &str) -> Vec<TextLine> {
    let root = text.lines().next().map_or(0, column);
    // Until the last node, each line belongs to the plan: a condition can have several lines.
    let last_node = text.lines().enumerate().filter(|(_, line)| node_line(line).is_some()).map(|(number, _)| number);
    let last_node = last_node.last().unwrap_or_default();
    // In a log and in psql's table, spaces are before all lines of the plan and not before the line after it.
    let belongs = |(number, line): &(usize, &str)| {
        let column = column(line);
        *number <= last_node || column > root || column == root && (root > 0 || is_total(line.trim()))
    };
    let mut lines = Vec::new();
    let mut nodes = 0;
    for (_, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).take_while(belongs) {
        let times = match node_line(line) {
            Some(node) if nodes == 0 || node.arrow.is_some() => {
                nodes += 1;
                LineTimes::Node(nodes - 1)
            }
            _ if is_timed_worker(line.trim()) => LineTimes::Worker,
            _ if column(line) <= root + 2 && is_execution_time(line.trim()) => LineTimes::Execution,
            _ => LineTimes::None,
        };
        lines.push(TextLine { text: without_indent(line, root).trim_end().into(), times });
        if times == LineTimes::Execution {
            break;
        }
    }
    lines
}

/// Returns whether a line that is not indented belongs to the plan: a total like `Planning Time: 0.1 ms`. Messages of a log
/// begin with a word in capital letters, and psql's own line with `Time:`.
fn is_total(line: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else { return false };
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase()) && name != "Time";
    let is_message = name != "JIT" && name.bytes().all(|b| b.is_ascii_uppercase());
    is_name && !is_message && (line.ends_with(':') || line.contains(": ") || name.starts_with("Trigger "))
}

fn is_timed_worker(line: &str) -> bool {
    line.strip_prefix("Worker ").and_then(|rest| rest.split_once(":  ")).is_some_and(|(number, figures)| {
        number.bytes().all(|b| b.is_ascii_digit()) && figures.starts_with("actual time=")
    })
}

/// Before PostgreSQL 10 it is written `Execution time`.
fn is_execution_time(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| name.eq_ignore_ascii_case(EXECUTION_TIME))
}

/// Returns the line without at most this many bytes of white space at its beginning.
fn without_indent(line: &str, indent: usize) -> &str {
    let end = line.char_indices().find(|(at, c)| *at >= indent || !c.is_whitespace());
    end.map_or("", |(at, _)| &line[at..])
}

#[cfg(test)]
mod tests;
