//! Replaces the times of a plan by the corrected ones of its report.

use crate::plan_format::Properties;
use crate::plan_format::keys::{EXECUTION_TIME, PLANS, STARTUP_TIME, TOTAL_TIME, WORKERS};
use crate::report::ExplainReport;
use serde_json::Value;

/// The times of one loop of a node, in ms, as a plan shows them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub startup: f64,
    pub total: f64,
}

/// How the times of a node change.
#[derive(Clone, Copy, Debug)]
pub struct Correction {
    total: f64,
    /// corrected / printed
    ratio: f64,
}

/// The corrected time of a node in all its loops of one process, and the number of these loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corrected {
    pub ms: f64,
    loops: f64,
}

/// Returns the corrected times of all nodes, in the order of the printed tree.
pub fn corrected_times(report: &ExplainReport) -> Vec<Corrected> {
    report.nodes.iter().map(|node| Corrected { ms: node.corrected_ms.estimate, loops: node.loops }).collect()
}

impl Correction {
    /// Returns the correction of a node that the plan shows with this total time per loop.
    pub fn of(node: Corrected, printed_total: f64) -> Correction {
        let total = if node.loops > 0.0 { node.ms / node.loops } else { 0.0 };
        Correction { total, ratio: if printed_total > 0.0 { total / printed_total } else { 0.0 } }
    }

    /// Returns the node's times. The startup time keeps its ratio to the total time.
    pub fn node(&self, printed: Times) -> Times {
        Times { startup: printed.startup.min(printed.total) * self.ratio, total: self.total }
    }

    /// Returns the times of one process, which keep their ratios to those of the node.
    pub fn worker(&self, printed: Times) -> Times {
        let total = printed.total * self.ratio;
        Times { startup: (printed.startup * self.ratio).min(total), total }
    }
}

/// Corrects all times of a plan in JSON format.
pub fn correct(plan: &mut Properties, report: &ExplainReport) {
    if let Some(root) = plan.get_mut("Plan") {
        correct_node(root, &mut corrected_times(report).into_iter());
    }
    if let Some(execution) = plan.get_mut(EXECUTION_TIME) {
        *execution = rounded(report.corrected_ms.estimate).into();
    }
}

/// Corrects a node and the nodes below it. `nodes` are in the order of the printed tree.
fn correct_node(value: &mut Value, nodes: &mut impl Iterator<Item = Corrected>) {
    let (Some(node), Some(corrected)) = (value.as_object_mut(), nodes.next()) else { return };
    if let Some(printed) = times(node) {
        let correction = Correction::of(corrected, printed.total);
        set(node, correction.node(printed));
        for worker in node.get_mut(WORKERS).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(worker) = worker.as_object_mut()
                && let Some(printed) = times(worker)
            {
                set(worker, correction.worker(printed));
            }
        }
    }
    for below in node.get_mut(PLANS).and_then(Value::as_array_mut).into_iter().flatten() {
        correct_node(below, nodes);
    }
}

fn times(properties: &Properties) -> Option<Times> {
    let ms = |key| properties.get(key).and_then(Value::as_f64);
    Some(Times { startup: ms(STARTUP_TIME).unwrap_or(0.0), total: ms(TOTAL_TIME)? })
}

fn set(properties: &mut Properties, times: Times) {
    for (key, ms) in [(STARTUP_TIME, times.startup), (TOTAL_TIME, times.total)] {
        if let Some(value) = properties.get_mut(key) {
            *value = rounded(ms).into();
        }
    }
}

/// Rounds a time to EXPLAIN's three decimals. Both formats then show the same digits.
pub fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
