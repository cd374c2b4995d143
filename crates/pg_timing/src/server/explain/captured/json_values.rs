//! Finds the plans in a JSON value: EXPLAIN's list, auto_explain's single plan, a table row that contains a plan, or a
//! log line whose message contains one. Values without a plan are skipped and take no memory.

use super::unreadable::{Found, Unreadable};
use crate::server::explain::plan::{TOO_MANY_NODES, steps};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What a JSON value contains.
pub enum Content<'a> {
    /// the plan, which is boxed because it is much larger than the other variant, and its JSON
    Plan(Box<Found>, &'a str),
    /// the text of a log's message or of a table's column
    Text(String),
}

/// Lists and rows around a plan. Drivers and `json_agg` add up to three. Each level is read once more.
const MAX_LEVELS: usize = 6;

/// Passes the plans and texts of a value to `found`.
pub fn each(value: &str, found: &mut dyn FnMut(Content)) {
    each_in(value, MAX_LEVELS, found);
}

fn each_in(value: &str, levels: usize, found: &mut dyn FnMut(Content)) {
    let Some(levels) = levels.checked_sub(1) else { return };
    steps::count(value.len());
    if value.starts_with('[') {
        // The value is valid JSON, so there is no error.
        _ = serde_json::Deserializer::from_str(value).deserialize_seq(Elements { levels, found });
    } else if value.starts_with('{') {
        object(value, levels, found);
    }
}

fn object(value: &str, levels: usize, found: &mut dyn FnMut(Content)) {
    let object: Object = match serde_json::from_str(value) {
        Ok(object) => object,
        Err(error) => return found(Content::Plan(Box::new(Err(unreadable(&error))), value)),
    };
    if object.plan.is_some() {
        let plan = serde_json::from_str(value).map_err(|error| unreadable(&error));
        return found(Content::Plan(Box::new(plan), value));
    }
    // The server's other messages can quote a client.
    let is_other = |message: &&RawValue| object.error_severity.is_some() && !message.get().starts_with("\"duration: ");
    let message = object.message.filter(|message| !is_other(message));
    for inner in [object.query_plan, message].into_iter().flatten() {
        match serde_json::from_str(inner.get()) {
            Ok(text) => found(Content::Text(text)),
            Err(_) => each_in(inner.get(), levels, found),
        }
    }
}

/// The keys that lead to a plan.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, rename = "Plan")]
    plan: Option<&'a RawValue>,
    #[serde(borrow, rename = "QUERY PLAN")]
    query_plan: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    error_severity: Option<&'a RawValue>,
}

/// Reads a list element by element.
struct Elements<'a> {
    levels: usize,
    found: &'a mut dyn FnMut(Content),
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element::<&RawValue>()? {
            each_in(element.get(), self.levels, self.found);
        }
        Ok(())
    }
}

/// Returns why the parser refused a value.
pub fn unreadable(error: &serde_json::Error) -> Unreadable {
    let text = error.to_string();
    if text.contains("recursion limit") {
        Unreadable::TooDeep
    } else if text.contains(TOO_MANY_NODES) {
        Unreadable::TooManyNodes
    } else {
        // The position does not refer to the original file.
        Unreadable::Json(text.split(" at line ").next().unwrap_or_default().to_string())
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
        assert_eq!(contents(r#"{"message": "a\nb", "QUERY PLAN": "c"}"#), (0, vec!["c".into(), "a\nb".into()]));
        assert_eq!(contents(r#"[0, "Plan", null, {"Plans": 1}]"#), (0, vec![]));
        assert_eq!(contents(&format!("[{PLAN}, {PLAN}]")).0, 2);
    }
}
