//! Writes EXPLAIN's text format from its JSON format, as `explain.c` does.

mod actual;
mod jit;
mod node;
mod properties;
mod totals;

use crate::escape;
use crate::plan_format::Properties;
use crate::plan_format::keys::{PLANS, VERBOSE};
use crate::report::ExplainReport;
use serde_json::Value;

/// Returns the plan as text. The names of its nodes are in the report.
pub fn text(plan: &Properties, report: &ExplainReport) -> String {
    let mut lines = Vec::new();
    // auto_explain has the query before the plan. EXPLAIN does not, and programs take the first line for the topmost node.
    for (key, value) in plan.iter().skip_while(|(key, _)| *key != "Plan") {
        match value.as_object().filter(|_| key == "Plan") {
            Some(root) => {
                let titles = &mut report.nodes.iter().map(|node| node.title.as_str());
                node::write(root, 0, is_verbose(root), titles, &mut lines);
            }
            None => totals::write(key, value, &mut lines),
        }
    }
    lines.iter().map(|line| escape::line(line) + "\n").collect()
}

/// Returns whether a node has properties that only VERBOSE shows.
fn is_verbose(node: &Properties) -> bool {
    VERBOSE.iter().any(|key| node.contains_key(*key)) || children(node).any(is_verbose)
}

fn children(node: &Properties) -> impl Iterator<Item = &Properties> {
    node.get(PLANS).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}
