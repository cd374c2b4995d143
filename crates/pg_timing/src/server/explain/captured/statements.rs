//! The statements in EXPLAIN's output, after YAML or XML has become the values of JSON.

use super::json_values;
use super::structured::Structured;
use super::unreadable::{Found, Unreadable};
use crate::server::explain::plan::Explained;
use serde::Deserialize;
use serde_json::Value;

/// Passes each statement's plan and its properties to `found`. EXPLAIN writes a list of statements, and auto_explain one statement.
pub fn each(value: Value, format: Structured, found: &mut dyn FnMut(Found, &Value)) {
    let mut one = |statement: Value| {
        let plan = Explained::deserialize(&statement).map_err(|error| match json_values::unreadable(&error) {
            Unreadable::Json(why) => format.damaged(&why),
            other => other,
        });
        found(plan, &statement);
    };
    match value {
        Value::Array(list) => list.into_iter().for_each(one),
        statement => one(statement),
    }
}
