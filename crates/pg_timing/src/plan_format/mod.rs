//! Facts about EXPLAIN's text and JSON formats that both reading and writing need. They are those of `explain.c` in
//! PostgreSQL 15 to 19.

pub mod counters;
pub mod keys;
mod keywords;
pub mod lines;
pub mod names;

use serde_json::{Map, Value};

/// The properties of a node or of a group, in the order in which EXPLAIN prints them.
pub type Properties = Map<String, Value>;

/// A format of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanFormat {
    Text,
    Json,
}

/// A plan as EXPLAIN printed it.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanDocument {
    /// one element of the list that EXPLAIN (FORMAT JSON) prints
    Json(Properties),
    /// the lines of the text format, without what a log or psql adds
    Text(Vec<TextLine>),
}

/// A line of the text format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLine {
    pub text: String,
    pub times: LineTimes,
}

/// The times that a line shows and that have timing overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTimes {
    None,
    /// times of the node with this index, in the order of the printed tree
    Node(usize),
    /// times of one process of the node above
    Worker,
    Execution,
}

/// Returns an integer or a number with decimals, or else the text.
pub fn scalar(text: &str) -> Value {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.bytes().skip(1).all(|b| b.is_ascii_digit() || b == b'.');
    match serde_json::from_str::<Value>(text) {
        Ok(number @ Value::Number(_)) if is_number => number,
        _ => text.into(),
    }
}

/// Returns the value as the text format prints it. Lists are printed without brackets.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().all(|value| !value.is_array() && !value.is_object()) => {
            list.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
