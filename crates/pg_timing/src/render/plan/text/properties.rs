//! The lines below a node's line.

use super::actual::{actual, indented};
use super::jit::jit;
use crate::plan_format::counters::COUNTERS;
use crate::plan_format::keys::{
    GROUPING_SETS, LOOPS, ONLY_IF_TRUE, ONLY_IF_VERBOSE, ROWS, SORT_GROUPS, SORT_SPACES, STARTUP_TIME, TARGET_TABLES,
    TOTAL_TIME, WORKER_NUMBER, WORKERS, only_if_positive,
};
use crate::plan_format::lines::GROUPS;
use crate::plan_format::names::target;
use crate::plan_format::{Properties, shown};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the lines of all properties but the hidden ones, in their order.
pub fn lines(properties: &Properties, hidden: &[&'static str], verbose: bool) -> Vec<String> {
    let mut done: BTreeSet<&str> = hidden.iter().copied().collect();
    let mut lines = Vec::new();
    for (key, value) in properties {
        if done.contains(key.as_str()) {
            continue;
        }
        let shared = GROUPS.iter().filter(|group| group.keys.contains(&key.as_str()));
        let shared = shared.filter_map(|group| Some((group, group.write(properties)?))).next();
        if let Some((group, line)) = shared {
            done.extend(group.keys);
            lines.extend(Some(line).filter(|line| !line.is_empty()));
        } else if let Some(counters) = COUNTERS.iter().find(|counters| counters.include(key, properties)) {
            done.extend(counters.keys());
            lines.extend(counters.write(properties));
        } else {
            lines.extend(own_lines(key, value, properties, verbose));
        }
    }
    lines
}

/// Returns the lines of one property.
fn own_lines(key: &str, value: &Value, node: &Properties, verbose: bool) -> Vec<String> {
    match (key, value) {
        (WORKERS, Value::Array(list)) => workers(list, verbose),
        (GROUPING_SETS, Value::Array(sets)) => sets.iter().flat_map(grouping_set).collect(),
        (TARGET_TABLES, Value::Array(tables)) => tables.iter().flat_map(|table| target_table(table, node)).collect(),
        ("JIT", Value::Object(group)) => jit(group),
        (_, Value::Object(group)) if SORT_GROUPS.contains(&key) => vec![sort_group(key, group)],
        (_, Value::Bool(value)) if ONLY_IF_TRUE.contains(&key) && (!value || key == ONLY_IF_VERBOSE && !verbose) => {
            Vec::new()
        }
        _ if only_if_positive(key) && value.as_f64() == Some(0.0) => Vec::new(),
        _ => vec![format!("{key}: {}", shown(value))],
    }
}

/// Returns the lines of one of the sorts of GROUPING SETS: `Sort Key: b`, and a line for each set.
fn grouping_set(value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        // "Hash Keys" and "Group Keys" are lists of sets.
        let sets = value.as_array().zip(key.strip_suffix('s')).filter(|(sets, _)| sets.iter().all(Value::is_array));
        let Some((sets, name)) = sets else {
            lines.push(format!("{key}: {}", shown(value)));
            continue;
        };
        let indent = if lines.is_empty() { "" } else { "  " };
        for set in sets {
            let columns = Some(shown(set)).filter(|columns| !columns.is_empty()).unwrap_or("()".into());
            lines.push(format!("{indent}{name}: {columns}"));
        }
    }
    lines
}

/// Returns `Update on p1 p_1`, and below it what a foreign server will run.
fn target_table(table: &Value, node: &Properties) -> Vec<String> {
    let Some(table) = table.as_object() else { return Vec::new() };
    let text = |key| table.get(key).and_then(Value::as_str);
    let operation = node.get("Operation").map_or(String::new(), shown);
    let name = target(text("Schema"), text("Relation Name"), text("Alias"));
    let own = lines(table, &["Relation Name", "Schema", "Alias"], true);
    std::iter::once(format!("{operation}{name}")).chain(own.iter().map(|line| format!("  {line}"))).collect()
}

/// Returns `Full-sort Groups: 5  Sort Method: quicksort  Average Memory: 26kB  Peak Memory: 27kB`.
fn sort_group(key: &str, group: &Properties) -> String {
    let of = |group: &Properties, key: &str| group.get(key).map_or(String::new(), shown);
    let methods = group.get("Sort Methods Used").and_then(Value::as_array).map_or(0, Vec::len);
    let mut line = format!(
        "{key}: {}  Sort Method{}: {}",
        of(group, "Group Count"),
        if methods > 1 { "s" } else { "" },
        of(group, "Sort Methods Used")
    );
    for space in SORT_SPACES {
        if let Some(Value::Object(used)) = group.get(&format!("Sort Space {space}")) {
            let [average, peak] = ["Average", "Peak"].map(|which| of(used, &format!("{which} Sort Space Used")));
            line += &format!("  Average {space}: {average}kB  Peak {space}: {peak}kB");
        }
    }
    line
}

/// Returns the lines of all workers. The first line of each one begins with its number.
fn workers(list: &[Value], verbose: bool) -> Vec<String> {
    let mut all = Vec::new();
    for worker in list.iter().filter_map(Value::as_object) {
        let number = worker.get(WORKER_NUMBER).map_or(String::new(), shown);
        let measured = worker.contains_key(LOOPS).then(|| actual(worker));
        let others = lines(worker, &[WORKER_NUMBER, STARTUP_TIME, TOTAL_TIME, ROWS, LOOPS], verbose);
        let mut own = measured.into_iter().chain(others);
        all.push(format!("Worker {number}:  {}", own.next().unwrap_or_default()));
        all.extend(own.map(|line| indented(2, &line)));
    }
    all
}
