//! EXPLAIN's own output with corrected times, for programs that read plans. All else is as printed.

use crate::error::Error;
use crate::escape;
use crate::human::percent;
use crate::plan::text::{CORRECTION, node_line};
use crate::report::{ExplainReport, ExplainedNode, PlanSource};
use serde_json::{Map, Value, json};

/// Returns the plan in EXPLAIN's text format. `answer` is the report's answer: the error if it has no figures.
pub fn text(report: &ExplainReport, answer: &str) -> Result<String, Error> {
    match source(report, answer)? {
        PlanSource::Text(plan) => corrected_text(plan, report),
        PlanSource::Json(_) => Err(Error::new(
            "the plan was not read as text, and pg_timing does not convert plans",
            "give --format plan-json",
        )),
    }
}

/// Returns the plan in EXPLAIN's JSON format, like [`text`].
pub fn json(report: &ExplainReport, answer: &str) -> Result<String, Error> {
    match source(report, answer)? {
        PlanSource::Json(plan) => corrected_json(plan, report),
        PlanSource::Text(_) => Err(Error::new(
            "the plan was read as text, and pg_timing does not convert plans",
            "give --format plan-text, or take the plan with EXPLAIN (ANALYZE, FORMAT JSON)",
        )),
    }
}

/// Returns the plan as EXPLAIN printed it. If the overhead could not be measured, a plan has no place for the reason.
fn source<'a>(report: &'a ExplainReport, answer: &str) -> Result<&'a PlanSource, Error> {
    match &report.document {
        _ if !report.has_figures() => Err(Error::new(answer, "the other formats show what was measured")),
        Some(source) => Ok(source),
        None => Err(not_the_same()),
    }
}

fn not_the_same() -> Error {
    Error::new(
        "the plan of the last run differs from that of the report",
        "run pg_timing again, or give another format",
    )
}

/// Returns what was removed from the times: `pg_timing 1.0.0 removed 35% (30% to 40%) of the reported 123.456 ms`.
fn summary(report: &ExplainReport) -> String {
    let removed = |corrected: f64| percent((1.0 - corrected / report.reported_ms.max(f64::MIN_POSITIVE)).max(0.0));
    let corrected = report.corrected_ms;
    let [low, estimate, high] = [corrected.high, corrected.estimate, corrected.low].map(removed);
    format!(
        "pg_timing {} removed {estimate} ({low} to {high}) of the reported {:.3} ms",
        report.version, report.reported_ms
    )
}

/// The times of one loop of a node, in ms, as a plan shows them.
#[derive(Clone, Copy)]
struct Times {
    startup: f64,
    total: f64,
}

/// How the times of a node change.
#[derive(Clone, Copy)]
struct Correction {
    total: f64,
    /// corrected / printed
    ratio: f64,
}

impl Correction {
    /// Returns the correction of a node that the plan shows with this total time per loop.
    fn of(node: &ExplainedNode, printed: Times) -> Correction {
        let total = if node.loops > 0.0 { node.corrected_ms.estimate / node.loops } else { 0.0 };
        Correction { total, ratio: if printed.total > 0.0 { total / printed.total } else { 0.0 } }
    }

    /// Returns the node's times. The startup time keeps its ratio to the total time.
    fn node(self, printed: Times) -> Times {
        Times { startup: printed.startup.min(printed.total) * self.ratio, total: self.total }
    }

    /// Returns the times of one process, which keep their ratios to those of the node.
    fn worker(self, printed: Times) -> Times {
        let total = printed.total * self.ratio;
        Times { startup: (printed.startup * self.ratio).min(total), total }
    }
}

/// Returns the lines of the plan with corrected times, and one more line that says so.
fn corrected_text(plan: &str, report: &ExplainReport) -> Result<String, Error> {
    let mut out = String::new();
    let mut nodes = report.nodes.iter();
    let mut correction = None;
    let mut lines = plan.lines().filter(|line| !line.trim().is_empty()).peekable();
    let indent = lines.peek().map_or(0, |line| line.len() - line.trim_start().len());
    for line in lines {
        let line =
            line.get(indent..).filter(|_| line[..indent.min(line.len())].trim().is_empty()).unwrap_or(line).trim_end();
        let node = node_line(line);
        let is_node = node.is_some();
        let is_below = line.starts_with(' ');
        // What follows the tree is a total, or not a part of the plan.
        if !is_node && !is_below && nodes.len() == 0 && !is_total(line) {
            break;
        }
        let printed =
            if is_node { line.rfind("(actual time=") } else { line.find("actual time=").filter(|_| is_worker(line)) };
        let split = printed.and_then(|at| split_at_times(line, at));
        if let Some(node) = node {
            let corrected = next(&mut nodes, &node.node.kind)?;
            correction = split.map(|(_, printed, _)| Correction::of(corrected, printed));
        }
        let is_execution =
            !is_below && line.split_once(": ").is_some_and(|(name, _)| name.eq_ignore_ascii_case(EXECUTION_TIME));
        let changed = match (split, correction) {
            (Some((before, printed, after)), Some(correction)) => {
                let Times { startup, total } =
                    if is_node { correction.node(printed) } else { correction.worker(printed) };
                Some(format!("{before}{:.3}..{:.3}{after}", rounded(startup), rounded(total)))
            }
            _ if is_execution => Some(format!("{EXECUTION_TIME}: {:.3} ms", rounded(report.corrected_ms.estimate))),
            _ => None,
        };
        out += &escape::line(changed.as_deref().unwrap_or(line));
        out.push('\n');
        if is_execution {
            break;
        }
    }
    if nodes.len() > 0 {
        return Err(not_the_same());
    }
    Ok(out + &format!("{CORRECTION}: {}\n", escape::line(&summary(report))))
}

/// Returns the report's next node, which must be of the kind that the plan shows.
fn next<'a>(nodes: &mut impl Iterator<Item = &'a ExplainedNode>, kind: &str) -> Result<&'a ExplainedNode, Error> {
    nodes.next().filter(|node| node.kind == kind).ok_or_else(not_the_same)
}

/// Returns whether a line that is not indented belongs to the plan: a total like `Planning Time: 0.1 ms`. Messages of a log
/// begin with a word in capital letters, and psql's own line with `Time:`.
fn is_total(line: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else { return false };
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase()) && name != "Time";
    let is_message = name != "JIT" && name.bytes().all(|b| b.is_ascii_uppercase());
    is_name && !is_message && (line.ends_with(':') || line.contains(": ") || name.starts_with("Trigger "))
}

fn is_worker(line: &str) -> bool {
    line.trim().strip_prefix("Worker ").and_then(|rest| rest.split_once(":  ")).is_some_and(|(number, figures)| {
        number.bytes().all(|b| b.is_ascii_digit()) && figures.starts_with("actual time=")
    })
}

/// Splits a line at its times: the text before, the times, and the text after them.
fn split_at_times(line: &str, actual: usize) -> Option<(&str, Times, &str)> {
    let start = actual + line[actual..].find('=')? + 1;
    let length = line[start..].find(' ')?;
    let (startup, total) = line[start..start + length].split_once("..")?;
    let times = Times { startup: startup.parse().ok()?, total: total.parse().ok()? };
    Some((&line[..start], times, &line[start + length..]))
}

// Keys of EXPLAIN's JSON.
const EXECUTION_TIME: &str = "Execution Time";
const STARTUP_TIME: &str = "Actual Startup Time";
const TOTAL_TIME: &str = "Actual Total Time";

/// Returns the plan's JSON with corrected times, and with one more property that says so.
fn corrected_json(plan: &str, report: &ExplainReport) -> Result<String, Error> {
    let mut plan: Value = serde_json::from_str(plan).map_err(|_| not_the_same())?;
    // EXPLAIN prints a list, and auto_explain one element of it.
    let statement = if plan.is_array() { plan.get_mut(0) } else { Some(&mut plan) };
    let mut statement = statement.and_then(Value::as_object_mut).map(std::mem::take).ok_or_else(not_the_same)?;
    let mut nodes = report.nodes.iter();
    correct_node(statement.get_mut("Plan").ok_or_else(not_the_same)?, &mut nodes)?;
    if nodes.len() > 0 {
        return Err(not_the_same());
    }
    if let Some(execution) = statement.get_mut(EXECUTION_TIME) {
        *execution = rounded(report.corrected_ms.estimate).into();
    }
    let after = statement.keys().position(|key| key == EXECUTION_TIME).map_or(statement.len(), |position| position + 1);
    statement.shift_insert(after, CORRECTION.into(), Value::from(summary(report)));
    Ok(crate::json::escaped(&format!("{:#}\n", json!([statement]))))
}

/// Corrects a node and the nodes below it. `nodes` are in the order of the printed tree. The JSON parser has limited the depth.
fn correct_node<'a>(value: &mut Value, nodes: &mut impl Iterator<Item = &'a ExplainedNode>) -> Result<(), Error> {
    let node = value.as_object_mut().ok_or_else(not_the_same)?;
    let corrected = next(nodes, node.get("Node Type").and_then(Value::as_str).unwrap_or_default())?;
    if let Some(printed) = times(node) {
        let correction = Correction::of(corrected, printed);
        set(node, correction.node(printed));
        for worker in list(node, "Workers").filter_map(Value::as_object_mut) {
            if let Some(printed) = times(worker) {
                set(worker, correction.worker(printed));
            }
        }
    }
    list(node, "Plans").try_for_each(|below| correct_node(below, nodes))
}

fn list<'a>(node: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'a mut Value> {
    node.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn times(properties: &Map<String, Value>) -> Option<Times> {
    let ms = |key| properties.get(key).and_then(Value::as_f64);
    Some(Times { startup: ms(STARTUP_TIME).unwrap_or(0.0), total: ms(TOTAL_TIME)? })
}

fn set(properties: &mut Map<String, Value>, times: Times) {
    for (key, ms) in [(STARTUP_TIME, times.startup), (TOTAL_TIME, times.total)] {
        if let Some(value) = properties.get_mut(key) {
            *value = rounded(ms).into();
        }
    }
}

/// Rounds a time to EXPLAIN's three decimals. Both formats then show the same digits.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
