//! What was measured of a node or of a worker.

use crate::plan_format::keys::{LOOPS, ROWS, STARTUP_TIME, TOTAL_TIME};
use crate::plan_format::{Properties, shown};
use serde_json::Value;

/// Returns a line that begins at this column.
pub fn indented(column: usize, line: &str) -> String {
    format!("{:column$}{line}", "")
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
