//! The lines of a node's parallel workers.

use super::node::{actual, indented};
use super::properties;
use crate::plan_format::keys::{LOOPS, ROWS, STARTUP_TIME, TOTAL_TIME, WORKER_NUMBER};
use crate::plan_format::shown;
use serde_json::Value;

/// Returns the lines of all workers. The first line of each one begins with its number.
pub fn workers(list: &[Value], verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for worker in list.iter().filter_map(Value::as_object) {
        let number = worker.get(WORKER_NUMBER).map_or(String::new(), shown);
        let measured = worker.contains_key(LOOPS).then(|| actual(worker));
        let others = properties::lines(worker, &[WORKER_NUMBER, STARTUP_TIME, TOTAL_TIME, ROWS, LOOPS], verbose);
        let mut own = measured.into_iter().chain(others);
        lines.push(format!("Worker {number}:  {}", own.next().unwrap_or_default()));
        lines.extend(own.map(|line| indented(2, &line)));
    }
    lines
}
