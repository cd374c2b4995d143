//! What shows that a text contains a plan.

use crate::server::explain::captured::announcement::is_log_line;
use crate::server::explain::captured::node_line;
use memchr::memmem;

/// Returns whether a plan outside of a log entry may begin here: with a node, with psql's heading, or in another format.
pub fn begins_pasted_plan(line: &str) -> bool {
    let is_frame = |c: char| c.is_whitespace() || "|│>\"".contains(c);
    let text = line.trim_start_matches(is_frame).trim_end_matches(is_frame);
    match text.as_bytes().first() {
        None => false,
        Some(b'[' | b'{') => {
            // psql marks a continued line.
            text[1..].trim_end_matches(['+', '↵']).trim().is_empty() || text.contains("\"Plan\"")
        }
        Some(b'<') => text.starts_with("<explain xmlns="),
        Some(b'-') => text.starts_with("- Plan:"),
        Some(b'P') if text == "Plan:" => true,
        Some(b'Q') if text.starts_with("QUERY PLAN") => true,
        Some(_) => {
            is_part_of_text_plan(text)
                && !is_log_line(line)
                && node_line::node_line(text).is_some_and(|node| node.arrow.is_none())
        }
    }
}

fn is_part_of_text_plan(line: &str) -> bool {
    memmem::find(line.as_bytes(), b"(actual ").is_some() || memmem::find(line.as_bytes(), b"(cost=").is_some()
}

/// Parts of executed plans in text, JSON, YAML and XML. CSV logs double quotation marks, and JSON logs escape them.
const PARTS: [&str; 9] = [
    "(actual time=",
    "(actual rows=",
    "(never executed)",
    "\"Actual Loops\":",
    "\"\"Actual Loops\"\":",
    "Actual Loops\\\":",
    "Actual Rows\\\":",
    " Actual Loops: ",
    "<Actual-Loops>",
];

/// The beginnings of other lines that only executed plans have, without the quotation marks of JSON.
const PROPERTIES: [&str; 16] = [
    "Buffers: shared ",
    "Buffers: local ",
    "Buffers: temp ",
    "I/O Timings: ",
    "WAL: records=",
    "Rows Removed by ",
    "Heap Fetches: ",
    "Heap Blocks: ",
    "Sort Method: ",
    "Workers Launched: ",
    "Peak Memory Usage: ",
    "Actual ",
    "Shared Hit Blocks",
    "Buckets: ",
    "<Actual-",
    "<Shared-Hit-Blocks>",
];

/// Returns whether a text contains a part of an executed plan in any format.
pub fn has_part_of_plan(text: &str) -> bool {
    PARTS.iter().any(|part| text.contains(part))
}

/// Returns whether the rest of an entry is that of an executed plan: it can have no node.
pub fn has_rest_of_plan(text: &str) -> bool {
    let begins_property = |line: &str| {
        let line = line.trim_start_matches([' ', '\t', '"']);
        PROPERTIES.iter().any(|property| line.starts_with(property) || is_json_key(line, property))
    };
    has_part_of_plan(text) || text.lines().any(begins_property)
}

/// Returns whether a line begins with this property of a text plan as a key of JSON: `Sort Method": "quicksort"`.
fn is_json_key(line: &str, property: &str) -> bool {
    property.strip_suffix(": ").and_then(|name| line.strip_prefix(name)).is_some_and(|rest| rest.starts_with("\":"))
}

/// What at least one line of every plan contains, in any format and however it was copied. `Plan` is a key in JSON, YAML and XML.
const SIGNS: [&str; 4] = ["rows=", "cost=", "Plan", "never executed"];

/// Returns where the first sign of a plan is. Without one, there is no plan.
pub fn sign_of_plan(text: &[u8]) -> Option<usize> {
    SIGNS.iter().filter_map(|sign| memmem::find(text, sign.as_bytes())).min()
}

pub fn has_sign_of_plan(text: &[u8]) -> bool {
    sign_of_plan(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_plans_begin_with_a_node_or_a_heading() {
        for line in [
            "                 QUERY PLAN",
            "| QUERY PLAN |",
            "[                                +",
            "{",
            "[{\"Plan\": {}}]",
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">",
            "- Plan: ",
            "Sort (actual time=1.000..2.500 rows=7 loops=3)",
            "> Sort  (cost=1.00..2.00 rows=1 width=1)",
        ] {
            assert!(begins_pasted_plan(line), "{line}");
        }
        for line in [
            "",
            "2026-11-24 [7] LOG:  checkpoint starting",
            "  ->  Sort (actual time=1.000..2.500 rows=7 loops=3)",
            "{\"timestamp\":\"2026-11-24\",\"message\":\"checkpoint starting\"}",
            "[unknown]",
            "<2026-11-24> LOG:  x",
        ] {
            assert!(!begins_pasted_plan(line), "{line}");
        }
    }
}
