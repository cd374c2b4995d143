//! EXPLAIN's own output with corrected times, for programs that read plans. All else is as printed.

use crate::error::Error;
use crate::escape;
use crate::human::percent;
use crate::plan::text::{CORRECTION, node_line};
use crate::report::{ExplainReport, ExplainedNode, PlanFormat, PlanSource};
use serde_json::{Map, Value, json};

/// Returns the plan in this format, in which it must have been read. `answer` is the report's answer: the error if it has no
/// figures, because a plan has no place for that.
pub fn plan(report: &ExplainReport, format: PlanFormat, answer: &str) -> Result<String, Error> {
    if !report.has_figures() {
        return Err(Error::new(answer, "the other formats show what was measured"));
    }
    match (report.document.as_ref().ok_or_else(not_the_same)?, format) {
        (PlanSource::Text(plan), PlanFormat::Text) => corrected_text(plan, report),
        (PlanSource::Json(plan), PlanFormat::Json) => corrected_json(plan, report),
        (_, format) => {
            let other = if format == PlanFormat::Text { "plan-json" } else { "plan-text" };
            let what = "the plan was not read in this format, and pg_timing does not convert plans";
            Err(Error::new(what, format!("give --format {other}")))
        }
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

/// Returns corrected / printed of the next node, which must be of the kind that the plan shows. All times of the node change by
/// this factor, also those of its processes. `printed_ms` is the time of one loop.
fn factor<'a>(
    nodes: &mut impl Iterator<Item = &'a ExplainedNode>,
    kind: &str,
    printed_ms: Option<f64>,
) -> Result<f64, Error> {
    let node = nodes.next().filter(|node| node.kind == kind).ok_or_else(not_the_same)?;
    let printed_ms = printed_ms.unwrap_or_default() * node.loops;
    Ok(if printed_ms > 0.0 { node.corrected_ms.estimate / printed_ms } else { 0.0 })
}

/// Returns the lines of the plan with corrected times, and one more line that says so.
fn corrected_text(plan: &str, report: &ExplainReport) -> Result<String, Error> {
    let mut out = String::new();
    let mut nodes = report.nodes.iter();
    let mut factor = 0.0;
    for line in plan.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        let node = node_line(line);
        let is_below = line.starts_with(' ');
        // What follows the tree is a total, or not a part of the plan.
        if node.is_none() && !is_below && nodes.len() == 0 && !is_total(line) {
            break;
        }
        let times = match &node {
            Some(_) => line.rfind("(actual time="),
            None => line.find("actual time=").filter(|_| is_worker(line)),
        };
        if let Some(line) = &node {
            factor = self::factor(&mut nodes, &line.node.kind, line.node.total_ms)?;
        }
        let is_execution =
            !is_below && line.split_once(": ").is_some_and(|(name, _)| name.eq_ignore_ascii_case(EXECUTION_TIME));
        let changed = if is_execution {
            Some(format!("{EXECUTION_TIME}: {:.3} ms", rounded(report.corrected_ms.estimate)))
        } else {
            times.and_then(|at| with_times(line, at, factor))
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

/// Returns whether a line that is not indented belongs to the plan: a total like `Planning Time: 0.1 ms`, or one of another version
/// or an extension. So no list of names is used, unlike in `layout`. Messages of a log
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

/// Returns a line with `time=startup..total` at `actual` multiplied by a factor.
fn with_times(line: &str, actual: usize, factor: f64) -> Option<String> {
    let start = actual + line[actual..].find('=')? + 1;
    let end = start + line[start..].find(' ')?;
    let (startup, total) = line[start..end].split_once("..")?;
    let [startup, total] = [startup.parse().ok()?, total.parse().ok()?].map(|ms: f64| rounded(ms * factor));
    Some(format!("{}{:.3}..{total:.3}{}", &line[..start], startup.min(total), &line[end..]))
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
    let kind = node.get("Node Type").and_then(Value::as_str).unwrap_or_default();
    let factor = factor(nodes, kind, node.get(TOTAL_TIME).and_then(Value::as_f64))?;
    correct_times(node, factor);
    list(node, "Workers").filter_map(Value::as_object_mut).for_each(|worker| correct_times(worker, factor));
    list(node, "Plans").try_for_each(|below| correct_node(below, nodes))
}

fn list<'a>(node: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'a mut Value> {
    node.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn correct_times(properties: &mut Map<String, Value>, factor: f64) {
    let total = properties.get(TOTAL_TIME).and_then(Value::as_f64).unwrap_or_default();
    for key in [STARTUP_TIME, TOTAL_TIME] {
        if let Some(ms) = properties.get_mut(key)
            && let Some(printed) = ms.as_f64()
        {
            *ms = rounded(printed.min(total) * factor).into();
        }
    }
}

/// Rounds a time to EXPLAIN's three decimals. Both formats then show the same digits.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
