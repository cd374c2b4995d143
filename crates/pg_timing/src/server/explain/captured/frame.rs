//! Removes what logs, psql, tickets and pgAdmin put around each line.

use super::prefix::without_log_prefix;

/// Returns a line without log prefixes, quotation marks, psql's borders, and psql's line continuation signs.
pub fn without_frame(line: &str) -> &str {
    let line = line.trim_end();
    if line.is_empty() {
        return line;
    }
    let mut line = without_log_prefix(line);
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    for bar in ['|', '│'] {
        if let Some(rest) = line.trim_start().strip_prefix(bar) {
            line = rest.strip_suffix(bar).unwrap_or(rest).trim_end();
        }
    }
    // psql's expanded display repeats the column name.
    if let Some(rest) = line.trim_start().strip_prefix("QUERY PLAN ").map(str::trim_end).filter(|rest| !rest.is_empty())
    {
        line = rest.strip_prefix('|').or(rest.strip_prefix('│')).unwrap_or(rest);
    }
    for sign in ['+', '↵'] {
        line = line.strip_suffix(sign).unwrap_or(line).trim_end();
    }
    // pgAdmin quotes each line. A line of JSON has a colon after the first quoted text.
    match line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) if !quoted.contains("\": ") => quoted,
        _ => line,
    }
}
