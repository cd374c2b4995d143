//! Finds the plans in a JSON value: EXPLAIN's list, auto_explain's single plan, rows of a table, or a log line whose message
//! contains a plan. Values without a plan are skipped and take no memory.

use super::MAX_NODES;
use super::announcement::announced_ms;
use super::errors::{Found, Unreadable};
use super::node_line::FIGURES;
use super::steps;
use memchr::memmem;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a JSON value contains.
pub enum Content<'a> {
    /// the plan, which is boxed because it is much larger than the other variant, and its JSON
    Plan(Box<Found>, &'a str),
    /// strings that contain a plan in text format or in another format, one per line
    Text(String),
}

/// Levels around a plan or a text. Each level is read once more.
const MAX_LEVELS: usize = 10;
/// What quotes a client's text. A plan in it was not logged.
const QUOTES: [&str; 6] = ["statement", "query", "detail", "context", "hint", "internal_query"];

/// Passes the plans and texts of a value to `found`.
pub fn each(value: &str, found: &mut dyn FnMut(Content)) {
    let mut texts = String::new();
    each_in(value, MAX_LEVELS, &mut texts, found);
    let is_plan = FIGURES.iter().chain(&["Node Type", "Node-Type", " plan:"]).any(|sign| texts.contains(sign));
    if is_plan {
        found(Content::Text(texts));
    }
}

fn each_in(value: &str, levels: usize, texts: &mut String, found: &mut dyn FnMut(Content)) {
    let Some(levels) = levels.checked_sub(1) else { return };
    steps::count(value.len());
    match value.as_bytes().first() {
        // The value is valid JSON, so there is no error.
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
            elements.into_iter().for_each(|element| each_in(element.get(), levels, texts, found));
        }
        Some(b'{') => object(value, levels, texts, found),
        Some(b'"') => {
            let Ok(text) = serde_json::from_str::<Cow<str>>(value) else { return };
            // A message of the server is a text of its own. Rows of a plan are one text.
            if text.lines().next().is_some_and(|line| announced_ms(line).is_some()) {
                return found(Content::Text(text.into_owned()));
            }
            *texts += &text;
            texts.push('\n');
        }
        _ => {}
    }
}

fn object(value: &str, levels: usize, texts: &mut String, found: &mut dyn FnMut(Content)) {
    let entries: BTreeMap<Cow<str>, &RawValue> = match serde_json::from_str(value) {
        Ok(entries) => entries,
        Err(error) => return found(Content::Plan(Box::new(Err(unreadable(&error))), value)),
    };
    if entries.contains_key("Plan") {
        return found(Content::Plan(Box::new(plan(value)), value));
    }
    // The server's other messages can quote a client.
    let is_log = entries.contains_key("error_severity");
    let is_other = |key: &str, entry: &RawValue| is_log && key == "message" && !entry.get().starts_with("\"duration: ");
    for (key, entry) in entries {
        if !QUOTES.contains(&key.as_ref()) && !is_other(&key, entry) {
            each_in(entry.get(), levels, texts, found);
        }
    }
}

/// Reads one statement of EXPLAIN's JSON.
pub fn plan(json: &str) -> Found {
    // Each node has this key, so its number limits the memory.
    if memmem::find_iter(json.as_bytes(), "\"Node Type\"").nth(MAX_NODES).is_some() {
        return Err(Unreadable::TooManyNodes);
    }
    serde_json::from_str(json).map_err(|error| unreadable(&error))
}

/// Returns why the parser refused a value.
pub fn unreadable(error: &serde_json::Error) -> Unreadable {
    let text = error.to_string();
    match text.contains("recursion limit") {
        true => Unreadable::TooDeep,
        // The position does not refer to the original file.
        false => Unreadable::Json(text.split(" at line ").next().unwrap_or_default().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of plans and the texts.
    fn contents(value: &str) -> (usize, Vec<String>) {
        let (mut plans, mut texts) = (0, Vec::new());
        each(value, &mut |content| match content {
            Content::Plan(plan, _) => plans += usize::from(plan.is_ok()),
            Content::Text(text) => texts.push(text),
        });
        (plans, texts)
    }

    #[test]
    fn plans_are_found_in_lists_rows_and_messages() {
        const PLAN: &str = r#"{"Plan": {"Node Type": "Result"}}"#;
        for value in [
            PLAN.to_string(),
            format!("[{PLAN}]"),
            format!(r#"[{{"QUERY PLAN": [{PLAN}]}}]"#),
            format!("[[[{PLAN}]]]"),
            format!(r#"{{"message": {PLAN}}}"#),
        ] {
            assert_eq!(contents(&value), (1, vec![]), "{value}");
        }
        let rows = r#"[{"QUERY PLAN": "A (actual rows=1 loops=1)"}, {"QUERY PLAN": "  ->  B"}, {"statement": "C"}]"#;
        assert_eq!(contents(rows), (0, vec!["A (actual rows=1 loops=1)\n  ->  B\n".into()]));
        assert_eq!(contents(r#"[0, "Plan", null, {"Plans": 1}]"#), (0, vec![]));
        assert_eq!(contents(&format!("[{PLAN}, {PLAN}]")).0, 2);
    }
}
