//! One line with performance data, in the format of the Monitoring Plugins' guidelines.

pub mod advise;
pub mod check;
mod perfdata;

use crate::escape;
use crate::report::Severity;
use perfdata::Datum;

/// Returns `SERVICE STATUS - text | performance data`.
fn line(service: &str, severity: Severity, text: &str, data: &[Datum]) -> String {
    // A vertical bar would start the performance data, and a line break would end the line.
    let text = escape::line(text).replace('|', "/");
    let data: Vec<String> = data.iter().map(Datum::text).collect();
    let data = if data.is_empty() { String::new() } else { format!(" | {}", data.join(" ")) };
    format!("{service} {} - {text}{data}\n", severity.word())
}
